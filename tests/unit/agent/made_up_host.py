"""A host for tests of the agent: adb's list, phones, workers and Redis are scripts, time is a number."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from orchestrator.domain.agent import AgentReport, News, PhoneReport
from orchestrator.domain.errors import InfraError
from orchestrator.domain.event import Registration
from orchestrator.domain.health import Rung
from orchestrator.domain.lease import Hold
from tests.results_fixture import device
from workers.agent.agent import Agent
from workers.agent.station import Identity
from workers.discovery import Reachable
from workers.transports.adb_listing import PhoneListing


@dataclass
class Child:
    pid: int
    found: Reachable
    code: int | None = None
    stopped: bool = False
    words: str = "words"

    def ended(self) -> int | None:
        return self.code

    def ask_to_stop(self) -> None:
        self.stopped = True

    def kill(self) -> None:
        self.code = -9

    def last_words(self) -> str:
        return self.words


@dataclass
class Host:
    """World and farm in one; an agent ticks on it."""

    now: float = 1000.0
    silent: set[str] = field(default_factory=set[str])
    starting: set[str] = field(default_factory=set[str])
    refuses: Exception | None = None
    """Why no worker can be started."""
    connected: list[str] = field(default_factory=list[str])
    on_usb: set[str] = field(default_factory=set[str])
    """Serials with a colon that are no addresses, whatever they look like."""
    by_network: list[bool] = field(default_factory=list[bool])
    """Whether each climbed phone was said to be a network phone."""
    waits: bool = False
    """Calls are not done before ``finish``."""
    calls: "list[tuple[Future[object], Callable[[], object]]]" = field(
        default_factory=list[tuple["Future[object]", Callable[[], object]]]
    )
    left: list[threading.Event] = field(default_factory=list[threading.Event])
    strangers: list[Registration] = field(default_factory=list[Registration])
    """Workers that are not this agent's."""
    identities: dict[str, Identity] = field(default_factory=dict[str, Identity])
    helps: Rung | None = None
    """The rung after which silent phones answer."""
    children: list[Child] = field(default_factory=list[Child])
    climbed: list[tuple[str, Rung]] = field(default_factory=list[tuple[str, Rung]])
    asked: list[str] = field(default_factory=list[str])
    held: dict[str, Hold] = field(default_factory=dict[str, Hold])
    away_since: float | None = None
    """Redis is: what it says is what it said then."""
    known: list[Hold] = field(default_factory=list[Hold])
    leased: set[str] = field(default_factory=set[str])
    queued: dict[str, str] = field(default_factory=dict[str, str])
    """Device → its last lease, while batches wait for it."""
    deaf: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Devices whose worker was replaced, and why."""
    told: dict[str, list[News]] = field(default_factory=dict[str, list[News]])
    reports: list[AgentReport] = field(default_factory=list[AgentReport])
    rows: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.agent = Agent(
            AgentReport("shelf", 1, "2026-11-30T12:00:00+00:00", ""),
            self,
            self,
            clock=lambda: self.now,
            wall=lambda: self.now + 1e9,
        )

    def identify(self, serial: str) -> Identity:
        self.asked.append(serial)
        if serial in self.silent:
            raise InfraError("no answer within 10 s")
        known = Identity(serial, "boot-1", serial not in self.starting, f"id-{serial}")
        return self.identities.get(serial, known)

    def connect(self, serial: str) -> None:
        self.connected.append(serial)

    def climb(self, rung: Rung, serial: str, leave: threading.Event, *, network: bool) -> None:
        self.by_network.append(network)
        self.left.append(leave)
        self.climbed.append((serial, rung))
        if rung is not self.helps:
            raise InfraError("it did not come back")
        self.silent.discard(serial)

    def start_worker(self, found: Reachable) -> Child:
        if self.refuses is not None:
            raise self.refuses
        self.children.append(Child(len(self.children) + 100, found))
        return self.children[-1]

    def later(self, call: Callable[[], object]) -> "Future[object]":
        done: Future[object] = Future()
        self.calls.append((done, call))
        if not self.waits:
            self.finish()
        return done

    def finish(self) -> None:
        """Do what was put off."""
        for done, call in self.calls:
            if done.set_running_or_notify_cancel():
                try:
                    done.set_result(call())
                except (InfraError, ValueError) as e:
                    done.set_exception(e)
        self.calls.clear()

    def registrations(self) -> Sequence[Registration]:
        ours = [self.registration(c) for c in self.children if c.code is None]
        taken = {s.record.device_id for s in self.strangers}
        return [*self.strangers, *(r for r in ours if r.record.device_id not in taken)]

    def registration(self, child: Child) -> Registration:
        known = self.identities.get(child.found.serial)
        record = device(known.device_id if known else f"id-{child.found.serial}", serial=child.found.serial)
        return Registration(replace(record, host="shelf"), f"w{child.pid}", "", child.pid)

    def holds(self) -> Sequence[Hold]:
        if self.away_since is None:
            self.known = list(self.held.values())
        return self.known

    def unheard_s(self) -> float:
        return 0.0 if self.away_since is None else self.now - self.away_since

    def busy(self, device_id: str) -> bool:
        return device_id in self.leased

    def waiting(self, device_id: str) -> str:
        return "" if device_id in self.leased else self.queued.get(device_id, "")

    def degraded(self, device_id: str, why: str) -> None:
        self.deaf.append((device_id, why))

    def news(self, device_id: str) -> Iterable[News]:
        return self.told.pop(device_id, [])

    def publish(self, report: AgentReport) -> None:
        self.reports.append(report)

    def shows(self, **rows: str) -> None:
        """adb's list from now on: ``a="device"``."""
        self.rows = rows
        listed = [
            PhoneListing(s, w, "" if w == "device" else "why", self._network(s) if w == "device" else None)
            for s, w in rows.items()
        ]
        self.agent.listed(listed, "adb")

    def _network(self, serial: str) -> bool:
        return ":" in serial and serial not in self.on_usb

    def run(self, seconds: float = 2.0, step: float = 0.5) -> None:
        for _ in range(round(seconds / step)):
            self.now += step
            self.agent.tick()

    def phone(self, serial: str) -> PhoneReport:
        return next(p for p in self.reports[-1].phones if p.serial == serial)

    def serving(self) -> list[str]:
        return [c.found.serial for c in self.children if c.code is None and not c.stopped]


class Log:
    def __init__(self) -> None:
        self.errors: list[str] = []

    def error(self, event: str, **_facts: object) -> None:
        self.errors.append(event)

    exception = error
