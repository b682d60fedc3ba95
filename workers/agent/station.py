"""One device of a host as its agent sees it: health, worker, and what goes on with it just now."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

import structlog

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
EARS_EVERY_S = 10.0
DEAF_S = 180.0
"""A worker that begins nothing for so long, while batches are queued for its phone and nobody has that
leased, does not hear its queue any more (celery#8030): it lives, and its registration does."""
log = structlog.get_logger()


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
    device_id: str
    """Empty: it does not tell one (yet)."""


class World(Protocol):
    """What a station can do; calls that may take long run in threads."""

    def identify(self, serial: str) -> Identity: ...
    def connect(self, serial: str) -> None: ...
    def climb(self, rung: Rung, serial: str, leave: threading.Event, *, network: bool) -> None: ...
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
    """Known once it has answered, or its worker has registered."""
    present: bool = False
    """adb lists it now, with whatever word."""
    network: bool = False
    """Its serial is an address to which the server opened the link, as the server itself told."""
    rejoin: bool = False
    """A network phone that left with its server: that one's successor lists it only when it is asked to."""
    serverless: bool = False
    """The adb server is away, or was a moment ago: what fails meanwhile is not the phone's fault, and no rung
    would help."""
    cut_off: bool = True
    """Its agent has not heard of holds for a while, or not yet: a person may have the phone."""
    held: bool = False
    """A person has it. Its health says so only once nothing of ours goes on there."""
    serving: bool = False
    """Its own worker is registered."""
    other: str = ""
    """Who else serves it: a worker that outlives an earlier agent, another host's, one started by hand."""
    busy: bool = False
    """Somebody has it leased, also a worker of another agent or host: it is asked nothing meanwhile."""
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
    _climbing: "tuple[Rung, Future[object], threading.Event] | None" = None
    _joining: "Future[object] | None" = None
    _next_join: float = 0.0
    _join_backoff_s: float = FIRST_BACKOFF_S
    _next_ears: float = 0.0
    _unheard: tuple[str, float] = ("", 0.0)
    """What its worker has left queued, and since when."""
    _surprise: str = ""
    _events: list[Event] = field(default_factory=list[Event])

    @property
    def serial(self) -> str:
        return self.found.serial

    @property
    def is_phone(self) -> bool:
        return self.found.transport == "adb"

    def tell(self, event: Event) -> None:
        """News for the next tick."""
        if not (self.serverless and isinstance(event, Failed | Silent)):
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
            events, self._events = self._events, []
            for event in events:
                self._step(event)
        self._step(Tick(now))
        self._watch_child(now)
        if self.is_phone:
            self._ask(now)
            if serve:
                self._recover(now)
        if self.health.condition is not Condition.MAINTENANCE:
            # A held phone's worker touches nothing: it gets no lease. It is left to say so.
            self._staff(now, serve=serve and self.fit and not self.twin and not self.other)

    @property
    def alone(self) -> bool:
        """Nothing may be begun there."""
        return self.held or self.cut_off

    @property
    def at_work(self) -> bool:
        """A question, a rung or a connection of ours still runs; each has a deadline."""
        calls = (self._asking, self._joining, self._climbing and self._climbing[1])
        return any(call is not None and not call.done() for call in calls)

    def leave(self) -> None:
        """Touch it no more: a person has it, or may have, or the agent ends. What goes on there ends soon."""
        if self._climbing is not None:
            self._climbing[2].set()
            self._climbing[1].cancel()
        for call in (self._asking, self._joining):
            if call is not None:
                call.cancel()

    def server_lost(self) -> None:
        """The adb server is gone, and with it the links that it was asked for."""
        if self.network and self.present and not self.rejoin:
            self.rejoin, self._next_join, self._join_backoff_s = True, 0.0, FIRST_BACKOFF_S

    def join(self, now: float) -> None:
        """Have a network phone listed again."""
        if self._joining is not None and self._joining.done():
            self._joining = None
        due = self.rejoin and self._joining is None and now >= self._next_join
        if due and not self.alone and self.health.condition is not Condition.MAINTENANCE:
            self._next_join = now + self._join_backoff_s
            self._join_backoff_s = min(2 * self._join_backoff_s, LONGEST_BACKOFF_S)
            serial = self.serial
            self._joining = self.world.later(lambda: self.world.connect(serial))

    @property
    def forgotten(self) -> bool:
        """Nothing is left to watch: it may return as if it were new."""
        idle = self.child is None and self._asking is None and self._climbing is None
        return self.is_phone and idle and not self.present and self.health.condition is Condition.OFFLINE

    def stop(self, now: float) -> None:
        """End the worker after its batch; ``tick`` notices when it has ended."""
        if self.child is not None and self.stopping_since is None:
            self.child.ask_to_stop()
            self.stopping_since = now

    @property
    def fit(self) -> bool:
        """Gates are the worker's own business: it waits there, and tells."""
        return self.health.condition in (
            Condition.ONLINE,
            Condition.HOT,
            Condition.LOW_BATTERY,
            Condition.FULL_DISK,
        )

    def _step(self, event: Event) -> None:
        before, self.health = self.health, step(self.health, event)
        if before.condition is Condition.MAINTENANCE and self.health.condition is not before.condition:
            self.listed = "?"  # what the list said meanwhile was not heard

    def _collect(self, now: float) -> None:
        if self._asking is not None and self._asking.done():
            self._asking, call = None, self._asking
            if not call.cancelled():
                self._answer(now, call)
        if self._climbing is not None and self._climbing[1].done():
            (rung, call, left), self._climbing = self._climbing, None
            if not left.is_set():
                why = self._failure(call)
                if not (why and self.serverless):
                    self._step(Tried(now, rung, ok=not why, why=why))

    def _answer(self, now: float, call: "Future[object]") -> None:
        if why := self._failure(call):
            self.tell(Silent(now, why))
            return
        answer = call.result()
        if isinstance(answer, Identity):
            self.identity = answer
            self.device_id = answer.device_id or self.device_id
            self.tell(Answered(now, answer.booted))

    def _failure(self, call: "Future[object]") -> str:
        """Empty, or why it did not work; nothing about one phone ends the agent."""
        error = call.exception()
        if error is None:
            return ""
        if isinstance(error, InfraError):
            return str(error)
        if self.surprises(error):
            log.error("unexpected", serial=self.serial, exc_info=error)
        return f"{type(error).__name__}: {error}"

    def surprises(self, error: BaseException) -> bool:
        """Worth a traceback in the log; the same error again, twice a second, is not."""
        before, self._surprise = self._surprise, repr(error)
        return before != self._surprise

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
        if asked:
            return
        self._back_off(now)
        if self.is_phone and code == EXIT_DEVICE and not self.serverless:
            self._step(Failed(now, f"its worker ended: {words}"))
        else:
            self.trouble = f"its worker ended with {code}: {words}"

    def _ask(self, now: float) -> None:
        """Who are you? Not during a batch, which it would disturb, and not while a person has it, or may."""
        due = self.listed == "device" and now >= self._next_ask and not self.busy and not self.alone
        asks = self.health.condition not in (Condition.MAINTENANCE, Condition.QUARANTINED)
        if due and asks and self._asking is None and self._climbing is None:
            self._next_ask = now + ASK_EVERY_S
            serial = self.serial
            self._asking = self.world.later(lambda: self.world.identify(serial))

    def _recover(self, now: float) -> None:
        """The next rung; not without a server, nor where somebody else works there, whose phone is well."""
        rung = wanted(self.health)
        ours = self._climbing is not None or self._asking is not None or self.child is not None
        theirs = self.busy or bool(self.other) or bool(self.twin) or self.serverless or self.alone
        if rung is not None and not ours and not theirs and now - self.health.since >= GRACE_S:
            serial, network, leave = self.serial, self.network, threading.Event()
            call = self.world.later(lambda: self.world.climb(rung, serial, leave, network=network))
            self._climbing = rung, call, leave
            self._next_ask = now

    def _staff(self, now: float, *, serve: bool) -> None:
        known = self.judged == self.identity  # else it may be a twin
        if serve and known and self.child is None and now >= self._not_before:
            self._start(now)
        if not serve:
            self.stop(now)

    def _start(self, now: float) -> None:
        try:
            self.child, self._started_at = self.world.start_worker(self.found), now
            self._unheard = "", now
        except (OSError, ValueError) as e:
            self._back_off(now)
            self.trouble = f"its worker cannot be started: {e}"
            log.error("no worker", serial=self.serial, error=str(e))

    def _back_off(self, now: float) -> None:
        self._not_before = now + self._backoff_s
        self._backoff_s = min(2 * self._backoff_s, LONGEST_BACKOFF_S)

    def ears_due(self, now: float) -> bool:
        due = now >= self._next_ears
        if due:
            self._next_ears = now + EARS_EVERY_S
        return due

    def heard(self, waiting: str, now: float) -> str:
        """``waiting`` stays the same while its worker leaves batches queued (``Farm.waiting``).

        Returns why its worker was replaced; empty: it was not.
        """
        if not waiting or waiting != self._unheard[0]:
            self._unheard = waiting, now
        elif now - self._unheard[1] > DEAF_S and self.child is not None and self.stopping_since is None:
            log.error("a worker that does not hear its queue is replaced", serial=self.serial)
            self._unheard = "", now
            self.stopping_since = now
            self.child.kill()  # nothing is in its hands
            return (
                f"its worker lived and took none of the work queued for {DEAF_S:g} s; its agent replaced it"
            )
        return ""

    def registered(self, device_id: str, now: float) -> None:
        """Its worker serves; once it has for a while, all is well on the host's side."""
        self.device_id, self.trouble = device_id, ""
        if now - self._started_at > STEADY_S:
            self._backoff_s = FIRST_BACKOFF_S
