"""The agent's loop: adb's list in, workers and recovery out, and a report for the farm.

Everything that may take long runs in threads of ``World``; ``tick`` itself never waits for a phone.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from orchestrator.domain.agent import AgentReport, News, PhoneReport
from orchestrator.domain.event import Registration
from orchestrator.domain.health import Answered, Condition, Returned, Taken
from orchestrator.domain.lease import Hold
from workers.agent.station import Station, World
from workers.discovery import Reachable
from workers.transports.adb_listing import PhoneListing

SERVER_GRACE_S = 10.0
"""A server that is restarted is back before; only then do its phones count as gone."""


class Farm(Protocol):
    """What an agent needs of Redis."""

    def registrations(self) -> Mapping[int, Registration]:
        """Workers of this host, by process id."""
        ...

    def holds(self) -> Mapping[str, Hold]:
        """Of devices on this host, by serial."""
        ...

    def busy(self, device_id: str) -> bool: ...
    def news(self, device_id: str) -> Iterable[News]: ...
    def publish(self, report: AgentReport) -> None: ...


@dataclass(slots=True)
class Agent:
    report: AgentReport
    """Host, process and start; the rest is filled in."""
    world: World
    farm: Farm
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    stations: dict[str, Station] = field(default_factory=dict[str, Station])
    adb: str = ""
    _rows: Sequence[PhoneListing] | None = None
    _no_server: tuple[float, str] | None = None
    _stopping: bool = False

    def serve_local(self, found: Reachable) -> None:
        """A GPU of this machine: a worker, and nothing to recover."""
        station = Station(found, self.world, listed="device", word=("device", ""))
        station.tell(Answered(self.clock(), booted=True))
        self.stations[found.serial] = station

    def listed(self, rows: Sequence[PhoneListing], about: str) -> None:
        """adb's list, whenever it changes; may be called from another thread."""
        self._rows, self.adb, self._no_server = rows, about, None

    def no_server(self, why: str) -> None:
        """No adb server answers; may be called from another thread."""
        self._no_server = self._no_server or (self.clock(), why)

    def tick(self) -> None:
        now = self.clock()
        self._take_list(now)
        self._take_news(now)
        self._find_twins()
        for station in self.stations.values():
            station.tick(now, serve=not self._stopping)
        self.farm.publish(self._report(now))

    def stop(self) -> None:
        """Start no more workers, and end each after its batch."""
        self._stopping = True
        for station in self.stations.values():
            station.stop(self.clock())

    @property
    def workers(self) -> int:
        return sum(s.child is not None for s in self.stations.values())

    def kill_workers(self) -> None:
        for station in self.stations.values():
            if station.child is not None:
                station.child.kill()

    def _take_list(self, now: float) -> None:
        rows = self._rows
        lost = self._no_server
        if lost is not None and now - lost[0] > SERVER_GRACE_S:
            self.adb = lost[1]
            for station in self._phones():
                station.word = ("", f"no adb server: {lost[1]}")
            return
        if rows is None:
            return
        words = {row.serial: (row.state, row.reason) for row in rows}
        for serial in words:
            if serial not in self.stations:
                self.stations[serial] = Station(Reachable("adb", serial), self.world)
        for station in self._phones():
            station.word = words.get(station.serial, ("", ""))

    def _take_news(self, now: float) -> None:
        workers = self.farm.registrations()
        holds = self.farm.holds()
        for station in self.stations.values():
            worker = workers.get(station.child.pid) if station.child else None
            if worker is not None:
                device_id = worker.record.device_id
                station.registered(device_id, now, busy=self.farm.busy(device_id))
            else:
                station.busy = False
            if station.is_phone and station.device_id:
                for event in self.farm.news(station.device_id):
                    station.tell(event)
            held = station.health.condition is Condition.MAINTENANCE
            hold = holds.get(station.serial)
            if hold is not None and not held:
                station.tell(Taken(now, hold.sentence))
            elif hold is None and held:
                station.tell(Returned(now))

    def _find_twins(self) -> None:
        """One phone may be listed twice (USB and Wi-Fi, or adopted as an emulator): it has one worker."""
        served: dict[tuple[str, str], str] = {}
        # Who has a worker keeps it; then USB before network.
        for station in sorted(self._phones(), key=lambda s: (s.child is None, ":" in s.serial, s.serial)):
            who = station.judged = station.identity
            if who is None or station.word[0] != "device" or not who.serialno:
                station.twin = ""
                continue
            station.twin = served.setdefault((who.serialno, who.boot_id), station.serial)
            if station.twin == station.serial:
                station.twin = ""

    def _phones(self) -> list[Station]:
        return [s for s in self.stations.values() if s.is_phone]

    def _report(self, now: float) -> AgentReport:
        phones = [self._phone(s, now) for s in self._phones() if not s.twin]
        return replace(self.report, adb=self.adb, phones=sorted(phones, key=lambda p: p.serial))

    def _phone(self, station: Station, now: float) -> PhoneReport:
        health = station.health

        def when(at: float | None) -> str:
            if at is None:
                return ""
            return datetime.fromtimestamp(self.wall() - now + at, UTC).isoformat(timespec="seconds")

        return PhoneReport(
            serial=station.serial,
            device_id=station.device_id,
            condition=health.condition,
            why=health.why or station.trouble,
            since=when(health.since),
            until=when(health.until),
            trusted=health.trusted,
            vitals=health.vitals,
        )
