"""Which devices this machine reaches: its own GPU and the phones that its adb server lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.domain.errors import InfraError, NotInstalled, UsageError
from workers.transports.adb import AdbDevice, list_phones, server_address, start_server
from workers.transports.phones import distinct_phones

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Reachable:
    """A device that can be opened."""

    transport: Literal["local", "adb"]
    serial: str
    """``local``, or the serial as adb lists it."""
    also: tuple[str, ...] = ()
    """Further serials under which adb lists the same phone."""

    def answers_to(self, serial: str) -> bool:
        return serial == self.serial or serial in self.also


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A device that is listed or was asked for and cannot be used, and why."""

    serial: str
    why: str


@dataclass(frozen=True, slots=True)
class Found:
    reachable: Sequence[Reachable]
    unreachable: Sequence[Unreachable]
    no_adb: str = ""
    """Why this machine can have no phones at all; nothing is missing then, unless one was asked for."""


def discover(*, phones: bool = True) -> Found:
    """This machine's GPU and, unless ``phones`` is off, every phone of its adb server.

    An adb server is started when none runs (as ``adb devices`` does); none is ever ended.
    """
    local = Reachable("local", LOCAL)
    if not phones:
        return Found([local], [])
    server = server_address()
    try:
        start_server(server)
        rows = list_phones(server)
    except NotInstalled as e:
        return Found([local], [], no_adb=str(e))
    except InfraError as e:
        return Found([local], [Unreachable("adb", str(e))])
    distinct = distinct_phones(rows, lambda serial: AdbDevice(server, serial))
    usable = [Reachable("adb", p.listing.serial, p.also) for p in distinct if not p.problem]
    refused = [Unreachable(r.serial, f"{r.state}: {r.reason}") for r in rows if not r.usable]
    refused += [Unreachable(p.listing.serial, p.problem) for p in distinct if p.problem]
    return Found([local, *usable], refused)


def find(serial: str) -> Reachable:
    """The device with this serial.

    Raises:
        UsageError: it is not listed, or cannot be used.
    """
    if serial == LOCAL:
        return Reachable("local", LOCAL)
    found = discover()
    for device in found.reachable:
        if device.answers_to(serial):
            return device
    unlisted = found.no_adb or "not listed by adb"
    why = next((u.why for u in found.unreachable if u.serial in (serial, "adb")), unlisted)
    listed = ", ".join(d.serial for d in found.reachable)
    raise UsageError(f"--device {serial}: {why}. Devices here: {listed}")
