"""Which devices this machine reaches: its own GPUs and the phones that its adb server lists."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.domain.errors import InfraError, NotInstalled, TilefarmError, UsageError
from orchestrator.domain.settings import Settings
from workers.bench import CALL_TIMEOUT_S, install_runner, probe, runner_build
from workers.identity import local_id
from workers.local_gpus import LocalGpu, group
from workers.transports.adb import AdbDevice, list_phones
from workers.transports.adb_server import server_address, start_server
from workers.transports.local import LocalDevice
from workers.transports.phones import distinct_phones

LOCAL = "local"
"""Every GPU of this machine that is served without being named."""


@dataclass(frozen=True, slots=True)
class Reachable:
    """A device that can be opened."""

    transport: Literal["local", "adb"]
    serial: str
    """``local:NAME``, or the serial as adb lists it."""
    also: tuple[str, ...] = ()
    """Further names: serials under which adb lists the same phone; id and SoC of a local GPU."""
    gpu: LocalGpu | None = None
    """As the probe found it; None for phones, which are probed when they are opened."""

    @property
    def by_default(self) -> bool:
        return self.gpu is None or self.gpu.by_default

    def answers_to(self, name: str) -> bool:
        return name == self.serial or name in self.also


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A device that is listed or was asked for and cannot be used, and why."""

    serial: str
    """``local``: this machine's own GPUs."""
    why: str


@dataclass(frozen=True, slots=True)
class Found:
    reachable: Sequence[Reachable]
    """Also those that are served only when they are named."""
    unreachable: Sequence[Unreachable] = ()
    no_adb: str = ""
    """Why this machine can have no phones at all; nothing is missing then, unless one was asked for."""

    def to_open(self, wanted: Sequence[str]) -> list[Reachable]:
        """What must be opened to serve these names (none: everything that is served by default).

        A phone's id and SoC are known only once it is open, so a name that nothing here answers to opens
        every phone.
        """
        if not wanted:
            return [f for f in self.reachable if f.by_default]
        unknown = any(not any(f.answers_to(w) for f in self.reachable) for w in wanted)
        named = [f for f in self.reachable if any(f.answers_to(w) for w in wanted)]
        return [f for f in self.reachable if f in named or (unknown and f.transport == "adb")]


def discover(settings: Settings, wanted: Sequence[str] = ()) -> Found:
    """This machine's GPUs and every phone of its adb server; of both, only what the ``wanted`` names need.

    An adb server is started when none runs (as ``adb devices`` does); none is ever ended.
    """
    listed = Found([])
    if not wanted or not all(_is_local(w) for w in wanted):
        listed = phones()
    if wanted and all(any(f.answers_to(w) for f in listed.reachable) for w in wanted):
        return listed
    try:
        local = local_gpus(settings)
    except TilefarmError as e:
        broken = [Unreachable(LOCAL, str(e)), *listed.unreachable]
        return Found(listed.reachable, broken, listed.no_adb)
    if wanted and all(any(f.answers_to(w) for f in local) for w in wanted):
        return Found(local)
    return Found([*local, *listed.reachable], listed.unreachable, listed.no_adb)


def local_gpus(settings: Settings) -> list[Reachable]:
    """Every GPU and software driver of this machine, found by the runner's own probe.

    Raises:
        NotInstalled: the runner is not built; says how.
        InfraError: no driver opens, or the folder for the runner cannot be used.
    """
    try:
        device = LocalDevice(settings.workdir / "local")
        build = runner_build(device.properties(timeout_s=CALL_TIMEOUT_S), settings.runner_dir)
        profiles = probe(device, install_runner(device, build))
    except OSError as e:
        raise InfraError(
            f"{settings.workdir}: no place for this machine's job folders ({e.strerror}). "
            "Set TILEFARM_WORKDIR to another folder"
        ) from e
    return [_reachable(gpu) for gpu in group(profiles)]


def phones() -> Found:
    """Every phone of this machine's adb server."""
    server = server_address()
    try:
        start_server(server)
        rows = list_phones(server)
    except NotInstalled as e:
        return Found([], no_adb=str(e))
    except InfraError as e:
        return Found([], [Unreachable("adb", str(e))])
    distinct = distinct_phones(rows, lambda serial: AdbDevice(server, serial))
    usable = [Reachable("adb", p.listing.serial, p.also) for p in distinct if not p.problem]
    refused = [Unreachable(r.serial, f"{r.state}: {r.reason}") for r in rows if not r.usable]
    refused += [Unreachable(p.listing.serial, p.problem) for p in distinct if p.problem]
    return Found(usable, refused)


def find(name: str, settings: Settings) -> Reachable:
    """The one device that a worker is to serve: a local GPU by any of its names, a phone by its serial.

    Raises:
        UsageError: it is not listed, cannot be used, or ``local`` stands for several.
        NotInstalled, InfraError: this machine's GPUs cannot be probed.
    """
    found = Found([]) if _is_local(name) else phones()
    reachable = [f for f in found.reachable if f.answers_to(name)]
    refused = {u.serial: u.why for u in found.unreachable}
    if reachable or name in refused:
        listed = list(found.reachable)
    else:
        local = local_gpus(settings)
        reachable = [g for g in local if g.answers_to(name)]
        listed = [*local, *found.reachable]
    if len(reachable) == 1:
        return reachable[0]
    if reachable:
        raise UsageError(
            f"--device {name}: this machine has several, and a worker serves one. Start one for each: "
            + ", ".join(f"--device {f.serial}" for f in reachable)
        )
    unlisted = found.no_adb or refused.get("adb", "not listed by adb")
    why = refused.get(name) or ("no such GPU on this machine" if _is_local(name) else unlisted)
    there = ", ".join(f.serial for f in listed) or "none"
    raise UsageError(f"--device {name}: {why}. Devices here: {there}")


def _is_local(name: str) -> bool:
    return name == LOCAL or name.startswith(f"{LOCAL}:")


def _reachable(gpu: LocalGpu) -> Reachable:
    also = [local_id(host_name(), gpu.name), gpu.name, gpu.soc.name]
    if gpu.by_default:
        also.append(LOCAL)
    return Reachable("local", f"{LOCAL}:{gpu.name}", tuple(dict.fromkeys(also)), gpu)


def host_name() -> str:
    return platform.node() or "localhost"
