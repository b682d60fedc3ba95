"""Devices for a command: registered workers of a farm, or private workers that live as long as the command.

With ``TILEFARM_BROKER`` set, whoever is registered there is the fleet. Without it, a private redis-server and
one worker process a device are started, and ended by their process ids; a worker that dies is started again.
"""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.domain.agent import PhoneReport
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import InfraError
from orchestrator.domain.event import Registration
from orchestrator.domain.results import Missing
from orchestrator.domain.settings import Settings
from orchestrator.execution.broker import Broker
from orchestrator.execution.private_redis import private_redis
from orchestrator.storage.redis_client import shown
from workers.child import WorkerChild
from workers.discovery import LOCAL, Found, discover, host_name

REGISTER_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 20.0
POLL_S = 0.1


@dataclass(slots=True)
class Fleet:
    """The devices of a command and how to reach their workers."""

    broker: Broker
    devices: list[DeviceRecord]
    missing: list[Missing]
    """Devices that were listed or asked for and cannot be used."""
    workers: list[WorkerChild] = field(default_factory=list[WorkerChild])
    serials: dict[str, str] = field(default_factory=dict[str, str])
    """Of missing phones of a farm, with the device id."""

    def require_devices(self) -> None:
        """Raises InfraError when there is nothing to run on; says why, and what next."""
        if self.devices:
            return
        reasons = "; ".join(f"{m.device_id}: {m.why}" for m in self.missing)
        if not reasons:
            raise InfraError(
                f"no worker is registered at {shown(self.broker.url)}: start `tilefarm agent` on a host "
                "with devices, or `tilefarm worker` for one of them"
            )
        raise InfraError(f"no device can be used: {reasons}. `tilefarm doctor` checks this machine")

    def revive(self) -> None:
        """Start private workers that died again; the dispatcher sends their work once more."""
        for worker in self.workers:
            if worker.ended() is not None:
                worker.start()


def log_folder(settings: Settings, run_id: str) -> Path:
    """Where the private workers of a run leave their logs, also when the run was killed."""
    folder = settings.out / "logs" / run_id
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def open_fleet(
    settings: Settings, wanted: Sequence[str], log_folder: Path, say: Callable[[str], None]
) -> Generator[Fleet]:
    """The devices that match ``wanted`` (serial, device id, SoC, ``local``), with workers.

    None wanted: all but those that are served only when they are named (decision 0012).
    """
    with ExitStack() as stack:
        if settings.broker:
            broker = Broker(settings.broker)
            stack.callback(broker.close)
            records = [r.record for r in broker.registrations().values()]
            phones = _unserved(broker, records)
            missing = [Missing(p.device_id or p.serial, "", why) for p, why in phones]
            serials = {p.serial: p.device_id for p, _ in phones if p.device_id}
            yield _without_held(choose(Fleet(broker, records, missing, serials=serials), wanted))
            return
        say("starting a private redis-server")
        url = stack.enter_context(private_redis())
        broker = Broker(url)
        stack.callback(broker.close)
        found = discover(settings, wanted)
        if found.no_adb:
            say(f"no phones: {found.no_adb}")
        workers = [
            WorkerChild(f, {"TILEFARM_BROKER": url}, log_folder, f"worker-{n}", keep_log=True)
            for n, f in enumerate(found.to_open(wanted))
        ]
        stack.callback(_stop_all, workers)
        for worker in workers:
            say(f"opening {worker.found.serial}")
            worker.start()
        records, missing = _await_registrations(broker, workers)
        missing += [Missing(u.serial, "", u.why) for u in found.unreachable]
        alive = [w for w in workers if w.ended() is None]
        yield choose(Fleet(broker, records, missing, alive), wanted, found)


def _await_registrations(
    broker: Broker, workers: Sequence[WorkerChild]
) -> tuple[list[DeviceRecord], list[Missing]]:
    """Wait until every worker is registered or dead."""
    deadline = time.monotonic() + REGISTER_TIMEOUT_S
    registrations: dict[int, Registration] = {}
    while time.monotonic() < deadline:
        registrations = {r.pid: r for r in broker.registrations().values()}
        if all(w.pid in registrations or w.ended() is not None for w in workers):
            break
        time.sleep(POLL_S)  # registrations are read, not announced; the deadline above bounds the wait
    records: list[DeviceRecord] = []
    missing: list[Missing] = []
    for worker in workers:
        registration = registrations.get(worker.pid)
        if registration is not None:
            records.append(registration.record)
        else:
            missing.append(Missing(worker.found.serial, "", worker.last_words()))
    return records, missing


def choose(fleet: Fleet, wanted: Sequence[str], found: Found | None = None) -> Fleet:
    """Keep what was asked for; a name that nothing answers to is missing, with the names that there are."""
    if not wanted:
        return fleet
    kept: list[DeviceRecord] = []
    missing: list[Missing] = []
    for name in wanted:
        listed = {f.serial for f in found.reachable if f.answers_to(name)} if found else set[str]()
        there = [d for d in fleet.devices if d.serial in listed or answers_to(d, name)]
        lost = [m for m in fleet.missing if m.device_id in (name, fleet.serials.get(name), *listed)]
        kept += [d for d in there if d not in kept]
        missing += [m for m in lost or ([] if there else _unmet(fleet, name)) if m not in missing]
    fleet.devices, fleet.missing = kept, missing
    return fleet


def _unserved(broker: Broker, served: Sequence[DeviceRecord]) -> list[tuple[PhoneReport, str]]:
    """Phones that an agent knows and that no worker serves now, with what is wrong with each."""
    known = {d.device_id for d in served} | {d.serial for d in served}
    return [
        (phone, f"{phone.condition} on {agent.host}: {phone.why or 'it has no worker yet'}")
        for agent in broker.agents()
        for phone in agent.phones
        if phone.device_id not in known and phone.serial not in known
    ]


def _without_held(fleet: Fleet) -> Fleet:
    """A device that a person holds is missing, with their reason: waiting for them could take days."""
    holds = fleet.broker.holds()
    held = [d for d in fleet.devices if d.device_id in holds]
    fleet.devices = [d for d in fleet.devices if d.device_id not in holds]
    fleet.missing += [
        Missing(
            d.device_id, "", f"{holds[d.device_id].sentence}. `tilefarm release {d.device_id}` gives it back"
        )
        for d in held
    ]
    return fleet


def _unmet(fleet: Fleet, name: str) -> list[Missing]:
    """Nothing answers to a name; it may be that of a GPU of this machine, whose probe failed."""
    there = ", ".join(f"{d.device_id} ({d.soc.name})" for d in fleet.devices) or "none"
    local = [m for m in fleet.missing if m.device_id == LOCAL]
    return [Missing(name, "", f"no such device; there are: {there}"), *local]


def answers_to(device: DeviceRecord, name: str) -> bool:
    """Does a device answer to this ``--device`` name? ``local`` and ``local:NAME`` are of this machine."""
    if name in (device.device_id, device.soc.name):
        return True
    if device.transport == LOCAL:
        return device.host == host_name() and name in (device.serial, LOCAL)
    return name == device.serial


def _stop_all(workers: Sequence[WorkerChild]) -> None:
    for worker in workers:
        worker.ask_to_stop()
    deadline = time.monotonic() + STOP_TIMEOUT_S
    for worker in workers:
        worker.wait(deadline)
