"""The agent's loop: adb's list in, workers and recovery out, and a report for the farm.

Everything that may take long runs in threads of ``World``; ``tick`` itself never waits for a phone.
"""

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

import structlog

from orchestrator.domain.agent import AgentReport, News, PhoneReport
from orchestrator.domain.event import Registration
from orchestrator.domain.health import Answered, Condition, Returned, Taken
from orchestrator.domain.lease import Hold
from orchestrator.domain.limits import printables
from orchestrator.domain.names import AGENT_TTL_S
from workers.agent.station import Station, World
from workers.discovery import Reachable
from workers.transports.adb_listing import PhoneListing, is_address

SERVER_GRACE_S = 10.0
"""A server that is restarted is back before; only then do its phones count as gone. And so long after it is
back: its first lists are empty."""
CUT_OFF_S = AGENT_TTL_S - 5.0
"""Without Redis for so long, phones are left alone: once the report has ended there, ``tilefarm hold`` has
nobody to wait for. What goes on at a phone has the difference to end."""
FORGET_S = 24 * 3600.0
"""A phone that was unplugged a day ago is no longer shown: Wi-Fi phones come with a new port each time."""
log = structlog.get_logger()


class Farm(Protocol):
    """What an agent needs of Redis; while that is away, what was last known."""

    def registrations(self) -> Sequence[Registration]:
        """Workers of all hosts."""
        ...

    def holds(self) -> Sequence[Hold]:
        """Of devices of all hosts."""
        ...

    def unheard_s(self) -> float:
        """Since holds were last read, or since the report was last shown there, whichever is longer ago."""
        ...

    def busy(self, device_id: str) -> bool: ...
    def waiting(self, device_id: str) -> str:
        """The last lease of a device for which batches are queued and that nobody has leased; else empty."""
        ...

    def degraded(self, device_id: str, why: str) -> None:
        """Runs that this device delayed will tell why."""
        ...

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
    _back_at: float | None = None
    """When the adb server answered again after it was away."""
    _heard_back: float | None = None
    _cut_off: bool = True
    _stopping: bool = False

    def serve_local(self, found: Reachable) -> None:
        """A GPU of this machine: a worker, and nothing to recover."""
        station = Station(found, self.world, listed="device", word=("device", ""))
        station.tell(Answered(self.clock(), booted=True))
        self.stations[found.serial] = station

    def inherit(self, phones: Sequence[PhoneReport]) -> None:
        """Those of an agent that was killed: if the adb server died with it, the next one has forgotten the
        network phones. One that had left before, or that a person has, is not asked for."""
        for phone in phones:
            gone = phone.condition in (Condition.OFFLINE, Condition.MAINTENANCE)
            if phone.network and is_address(phone.serial) and not gone:
                station = Station(Reachable("adb", phone.serial), self.world, network=True)
                station.rejoin = True
                self.stations[phone.serial] = station

    def listed(self, rows: Sequence[PhoneListing], about: str) -> None:
        """adb's list, whenever it changes; may be called from another thread."""
        if self._no_server is not None:
            self._back_at = self.clock()
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
            with _apart(station):
                station.tick(now, serve=not self._stopping)
        self.farm.publish(self._report(now))

    def stop(self) -> None:
        """Start no more workers, and end each after its batch."""
        self._stopping = True
        for station in self.stations.values():
            station.leave()
            station.stop(self.clock())

    @property
    def workers(self) -> int:
        return sum(s.child is not None for s in self.stations.values())

    def kill_workers(self) -> None:
        for station in self.stations.values():
            if station.child is not None:
                station.child.kill()

    def _take_list(self, now: float) -> None:
        rows, lost = self._rows, self._no_server
        young = self._back_at is not None and now - self._back_at < SERVER_GRACE_S
        for station in self._phones():
            station.serverless = lost is not None or young
        if lost is not None:
            for station in self._phones():
                station.server_lost()
                station.present = False
            if now - lost[0] > SERVER_GRACE_S:
                self.adb = lost[1]
                for station in self._phones():
                    station.word = ("", f"no adb server: {lost[1]}")
            return
        if rows is None:
            return
        if self._back_at != self._heard_back:
            self._heard_back = self._back_at  # it may have been away between two ticks
            for station in self._phones():
                station.server_lost()
        words = {row.serial: (row.state, row.reason) for row in rows}
        for row in rows:
            if row.serial not in self.stations:
                self.stations[row.serial] = Station(Reachable("adb", row.serial), self.world)
            if row.network is not None:
                self.stations[row.serial].network = row.network
        for station in self._phones():
            station.present = station.serial in words
            if station.present:
                station.word, station.rejoin = words[station.serial], False
                continue
            if not young:
                station.word = ("", "")
            station.join(now)
            if station.forgotten and now - station.health.since > FORGET_S:
                del self.stations[station.serial]

    def _take_news(self, now: float) -> None:
        workers = self.farm.registrations()
        holds = self.farm.holds()
        for station in self.stations.values():
            with _apart(station):
                self._tell(station, now, workers, holds)
        self._mind_the_farm()  # last: a link that hangs makes each question above take 10 s

    def _mind_the_farm(self) -> None:
        """Whoever is cut off hears of no hold: a person may have any of the phones by now."""
        before, self._cut_off = self._cut_off, self.farm.unheard_s() > CUT_OFF_S
        if self._cut_off and not before:
            log.warning("cut off from the farm: phones are left alone until Redis answers")
        for station in self._phones():
            station.cut_off = self._cut_off
            if self._cut_off:
                station.leave()

    def _tell(
        self, station: Station, now: float, workers: Sequence[Registration], holds: Sequence[Hold]
    ) -> None:
        host = self.report.host
        own = next((w for w in workers if _is_own(w, host, station)), None)
        if own is not None:
            station.registered(own.record.device_id, now)
        station.serving = own is not None
        device_id = station.device_id
        served = own is None and next((w for w in workers if w.record.device_id == device_id), None)
        station.other = f"served by process {served.pid} on {served.record.host}" if served else ""
        station.busy = bool(device_id) and self.farm.busy(device_id)
        if own is not None and station.ears_due(now):
            why = station.heard(self.farm.waiting(device_id), now)
            if why:
                self.farm.degraded(device_id, why)
        if station.is_phone and own is not None:
            # Others' news, and those of a worker that has gone, are not about the present one's phone.
            for event in self.farm.news(device_id):
                station.tell(replace(event, at=now))
        hold = next((h for h in holds if _is_of(h, host, station)), None)
        held = station.health.condition is Condition.MAINTENANCE
        station.held = hold is not None
        if hold is not None:
            station.leave()
            # Its word is what `tilefarm hold` waits for: the phone's other link must be left, too.
            left = not any(s.at_work for s in self.stations.values() if _is_of(hold, host, s))
            if left and (not held or station.health.why != hold.sentence):
                station.tell(Taken(now, hold.sentence))
        elif held:
            station.tell(Returned(now))
            if not station.is_phone:  # which nobody asks
                station.tell(Answered(now, booted=True))

    def _find_twins(self) -> None:
        """One phone may be listed twice (USB and Wi-Fi, or adopted as an emulator): it has one worker."""
        served: dict[tuple[str, str], str] = {}
        # What is listed comes first; who has a worker keeps it; then USB before network. A link that went
        # down is the twin of one that is up: only the link is lost.
        for station in sorted(
            self._phones(),
            key=lambda s: (s.word[0] != "device", s.child is None, s.network, s.serial),
        ):
            who = station.judged = station.identity
            station.twin = ""
            if who is None or not who.serialno:
                continue
            key = who.serialno, who.boot_id
            if station.word[0] == "device":
                first = served.setdefault(key, station.serial)
            else:
                first = served.get(key, station.serial)
            station.twin = first if first != station.serial else ""

    def _phones(self) -> list[Station]:
        return [s for s in self.stations.values() if s.is_phone]

    def _report(self, now: float) -> AgentReport:
        here = {s.device_id for s in self._phones() if s.word[0] == "device" and not s.twin}
        phones: list[PhoneReport] = []
        for station in self._phones():
            if station.twin or (station.word[0] == "" and station.device_id in here):
                continue  # it is there, through its other link
            with _apart(station):
                phones.append(self._phone(station, now))
        report = replace(self.report, adb=self.adb, phones=sorted(phones, key=lambda p: p.serial))
        return printables(report)  # a phone's own words are among it

    def _phone(self, station: Station, now: float) -> PhoneReport:
        health = station.health
        why = health.why or station.other or station.trouble
        if station.fit and not why and not station.serving:
            why = "its worker is starting; try again in a moment"

        def when(at: float | None) -> str:
            if at is None:
                return ""
            return datetime.fromtimestamp(self.wall() - now + at, UTC).isoformat(timespec="seconds")

        return PhoneReport(
            serial=station.serial,
            device_id=station.device_id,
            condition=health.condition,
            why=why,
            since=when(health.since),
            until=when(health.until),
            trusted=health.trusted,
            vitals=health.vitals,
            network=station.network,
        )


def _is_of(hold: Hold, host: str, station: Station) -> bool:
    return hold.device_id == station.device_id or (hold.host, hold.serial) == (host, station.serial)


def _is_own(worker: Registration, host: str, station: Station) -> bool:
    """Process ids repeat, in a container at each start, and a killed worker stays registered for seconds."""
    child, record = station.child, worker.record
    own = (host, child.pid, station.serial) if child else None
    return (record.host, worker.pid, record.serial) == own


@contextmanager
def _apart(station: Station) -> Generator[None]:
    """What goes wrong with one phone is not the others' trouble."""
    try:
        yield
    except Exception as e:
        if station.surprises(e):
            log.exception("unexpected; the other phones are served all the same", serial=station.serial)
