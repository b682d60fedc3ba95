"""One device of a host as its agent sees it: health, worker, and what goes on with it just now."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.domain.errors import InfraError
from orchestrator.domain.health import (
    UNSEEN,
    Answered,
    Condition,
    Event,
    Failed,
    Health,
    Listed,
    Rung,
    Silent,
    Tick,
    Tried,
    step,
    wanted,
)
from workers.__main__ import EXIT_DEVICE
from workers.discovery import Reachable

GRACE_S = 5.0
"""Before a rung is tried: an unplugged phone leaves the list meanwhile, and one that blinked is back."""
ASK_EVERY_S = 10.0
STOP_S = 900.0
"""A worker ends after its batch; one that has not by then is killed."""
FIRST_BACKOFF_S = 2.0
LONGEST_BACKOFF_S = 300.0
STEADY_S = 60.0


class Child(Protocol):
    @property
    def pid(self) -> int: ...
    def ended(self) -> int | None: ...
    def ask_to_stop(self) -> None: ...
    def kill(self) -> None: ...
    def last_words(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Identity:
    """Who answered: the phone's own serial number and the id of its boot."""

    serialno: str
    boot_id: str
    booted: bool


class World(Protocol):
    """What a station can do; calls that may take long run in threads."""

    def identify(self, serial: str) -> Identity: ...
    def climb(self, rung: Rung, serial: str) -> None: ...
    def start_worker(self, found: Reachable) -> Child: ...
    def later(self, call: Callable[[], object]) -> "Future[object]": ...


@dataclass(slots=True)
class Station:
    found: Reachable
    world: World
    health: Health = UNSEEN
    listed: str = ""
    """adb's last word that the health has heard."""
    word: tuple[str, str] = ("", "")
    """adb's last word, and why."""
    identity: Identity | None = None
    device_id: str = ""
    """Known once its worker has registered."""
    busy: bool = False
    """Its worker has it leased for a batch: it is asked nothing meanwhile."""
    judged: Identity | None = None
    """The identity that twins were looked for with."""
    twin: str = ""
    """Serial of the station that serves the same phone."""
    child: Child | None = None
    stopping_since: float | None = None
    trouble: str = ""
    """Why its worker cannot run though the device is well, e.g. a runner that is not built."""
    _backoff_s: float = FIRST_BACKOFF_S
    _not_before: float = 0.0
    _started_at: float = 0.0
    _next_ask: float = 0.0
    _asking: "Future[object] | None" = None
    _climbing: "tuple[Rung, Future[object]] | None" = None
    _events: list[Event] = field(default_factory=list[Event])

    @property
    def serial(self) -> str:
        return self.found.serial

    @property
    def is_phone(self) -> bool:
        return self.found.transport == "adb"

    def tell(self, event: Event) -> None:
        """News for the next tick."""
        self._events.append(event)

    def tick(self, now: float, *, serve: bool) -> None:
        """Take in what happened and do what is due; ``serve``: this station may have a worker."""
        self._collect(now)
        if self._climbing is None:
            # While a rung is tried, what the list says is its doing.
            state, why = self.word
            if state != self.listed:
                self.listed = state
                self._step(Listed(now, state, why))
            for event in self._events:
                self._step(event)
            self._events.clear()
        self._step(Tick(now))
        self._watch_child(now)
        if self.is_phone:
            self._ask(now)
            self._recover(now)
        if self.health.condition is not Condition.MAINTENANCE:
            # A held phone's worker touches nothing: it gets no lease. It is left to say so.
            self._staff(now, serve=serve and self._fit and not self.twin)

    def stop(self, now: float) -> None:
        """End the worker after its batch; ``tick`` notices when it has ended."""
        if self.child is not None and self.stopping_since is None:
            self.child.ask_to_stop()
            self.stopping_since = now

    @property
    def _fit(self) -> bool:
        """Gates are the worker's own business: it waits there, and tells."""
        return self.health.condition in (
            Condition.ONLINE,
            Condition.HOT,
            Condition.LOW_BATTERY,
            Condition.FULL_DISK,
        )

    def _step(self, event: Event) -> None:
        self.health = step(self.health, event)

    def _collect(self, now: float) -> None:
        if self._asking is not None and self._asking.done():
            self._asking, call = None, self._asking
            try:
                answer = call.result()
            except InfraError as e:
                self.tell(Silent(now, str(e)))
            else:
                if isinstance(answer, Identity):
                    self.identity = answer
                    self.tell(Answered(now, answer.booted))
        if self._climbing is not None and self._climbing[1].done():
            (rung, call), self._climbing = self._climbing, None
            try:
                call.result()
                self._step(Tried(now, rung, ok=True))
            except InfraError as e:
                self._step(Tried(now, rung, ok=False, why=str(e)))

    def _watch_child(self, now: float) -> None:
        if self.child is None:
            return
        code = self.child.ended()
        if code is None:
            if self.stopping_since is not None and now - self.stopping_since > STOP_S:
                self.child.kill()
            return
        words, asked = self.child.last_words(), self.stopping_since is not None
        self.child, self.stopping_since = None, None
        if asked or code == 0:
            return
        self._not_before = now + self._backoff_s
        self._backoff_s = min(2 * self._backoff_s, LONGEST_BACKOFF_S)
        if self.is_phone and code == EXIT_DEVICE:
            self._step(Failed(now, f"its worker ended: {words}"))
        else:
            self.trouble = f"its worker ended with {code}: {words}"

    def _ask(self, now: float) -> None:
        """Who are you? Not during a batch, which it would disturb, and not while a person has the phone."""
        due = self.listed == "device" and now >= self._next_ask and not self.busy
        asks = self.health.condition not in (Condition.MAINTENANCE, Condition.QUARANTINED)
        if due and asks and self._asking is None and self._climbing is None:
            self._next_ask = now + ASK_EVERY_S
            serial = self.serial
            self._asking = self.world.later(lambda: self.world.identify(serial))

    def _recover(self, now: float) -> None:
        rung = wanted(self.health)
        busy = self._climbing is not None or self._asking is not None or self.child is not None
        if rung is not None and not busy and now - self.health.since >= GRACE_S:
            serial = self.serial
            self._climbing = rung, self.world.later(lambda: self.world.climb(rung, serial))
            self._next_ask = now

    def _staff(self, now: float, *, serve: bool) -> None:
        known = self.judged == self.identity  # else it may be a twin
        if serve and known and self.child is None and now >= self._not_before:
            self.child, self._started_at = self.world.start_worker(self.found), now
        if not serve:
            self.stop(now)

    def registered(self, device_id: str, now: float, *, busy: bool) -> None:
        """Its worker serves; once it has for a while, all is well on the host's side."""
        self.device_id, self.busy, self.trouble = device_id, busy, ""
        if now - self._started_at > STEADY_S:
            self._backoff_s = FIRST_BACKOFF_S
