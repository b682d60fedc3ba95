"""Which rows of the adb server's list are the same phone.

An adb server adopts what listens on ports 5554–5585 by itself, and a phone may be on USB and Wi-Fi at once,
so one phone can be listed under two serials. The phone's own serial number and the id of its boot tell.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.domain.errors import InfraError
from workers.transports.adb_listing import PhoneListing
from workers.transports.base import Device

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_NETWORK_MARKS = (":", "._adb-tls-connect.", "emulator-")


@dataclass(frozen=True, slots=True)
class Phone:
    """One phone and the rows under which it is listed."""

    listing: PhoneListing
    """The row to use: USB before network, else the first one."""
    also: tuple[str, ...] = ()
    """Further serials of the same phone."""
    problem: str = ""
    """Why it could not be asked, or cannot be told from another phone."""


def distinct_phones(
    listings: Sequence[PhoneListing], open_device: Callable[[str], Device], timeout_s: float = 10.0
) -> list[Phone]:
    """Every usable phone once, in the order of the list; rows that cannot be used are left out.

    A phone that does not answer is kept by itself, with the problem."""
    groups: dict[tuple[str, str], list[PhoneListing]] = {}
    alone: list[Phone] = []
    for row in listings:
        if not row.usable:
            continue
        try:
            groups.setdefault(_who(open_device(row.serial), timeout_s), []).append(row)
        except InfraError as e:
            alone.append(Phone(row, problem=str(e)))
    found = [*(_phone(who, rows, groups) for who, rows in groups.items()), *alone]
    order = {row.serial: place for place, row in enumerate(listings)}
    return sorted(found, key=lambda phone: order[phone.listing.serial])


def _who(device: Device, timeout_s: float) -> tuple[str, str]:
    """(serial number property, boot id)."""
    properties = device.properties(timeout_s=timeout_s)
    boot = device.run(["cat", _BOOT_ID], timeout_s=timeout_s).stdout.decode("ascii", "replace").strip()
    serial = properties.get("ro.serialno") or properties.get("ro.boot.serialno") or ""
    if not serial or not boot:
        raise InfraError(f"{device.serial}: tells no serial number or boot id; it may still be booting")
    return serial, boot


def _phone(
    who: tuple[str, str], rows: list[PhoneListing], groups: dict[tuple[str, str], list[PhoneListing]]
) -> Phone:
    first = min(rows, key=lambda row: any(mark in row.serial for mark in _NETWORK_MARKS))
    also = tuple(row.serial for row in rows if row is not first)
    twins = [r.serial for other, rs in groups.items() if other[0] == who[0] and other != who for r in rs]
    problem = (
        f"{', '.join(twins)} tells the same serial number {who[0]} and is another phone" if twins else ""
    )
    return Phone(first, also, problem)
