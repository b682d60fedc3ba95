"""Rows of ``adb devices``: serials with spaces, states with explanations, banner lines."""

import re
from dataclasses import dataclass

from orchestrator.domain.limits import printable

_STATES = (
    *("device", "offline", "unauthorized", "authorizing", "connecting"),
    *("recovery", "rescue", "sideload", "bootloader", "host", "detached"),
)
_NO_PERMISSIONS = "no permissions"
_STATE = "|".join([*_STATES, f"{_NO_PERMISSIONS}.*?"])
_PADDED = re.compile(rf"(?P<serial>\S.*?)\s+(?P<state>{_STATE})(?:\s+(?:usb:|[\w]+:)\S.*)?\s*\Z")
"""A row of ``devices -l`` has spaces for the tab and ``key:value`` words after the state."""

_ADDRESS = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+(?:%\w+)?\]):(?P<port>[0-9]{1,5})")
_OTHER_NAMES = ("usb:", "product:", "model:", "device:", "tcp:", "udp:")
"""What a phone may be asked for by instead of its serial."""

_BANNERS = ("* daemon", "List of devices", "adb server")

_LONGEST_ROW = 1024
_LONGEST_SERIAL = 200

_REASONS = {
    "device": "",
    "offline": "does not answer adb: unplug and plug it in again, or restart it",
    "unauthorized": "accept this host's key on the phone's screen",
    "authorizing": "adb is still asking the phone; list again in a moment",
    "connecting": "adb is still connecting; list again in a moment",
}


@dataclass(frozen=True, slots=True)
class PhoneListing:
    """One row of the adb server's list."""

    serial: str
    state: str
    """``device`` when it can be used; ``unknown`` for a word that this version does not know."""
    reason: str
    """Empty for ``device``; else why it cannot be used and what to do."""
    network: bool | None = None
    """The server opened its link to the address that is its serial. None: not told; the serial alone is the
    phone's own word where it hangs on USB (``AdbServer.over_network``)."""

    @property
    def usable(self) -> bool:
        return self.state == "device"


def is_address(serial: str) -> bool:
    """It reads as HOST:PORT or [IPv6]:PORT, and for adb as nothing else."""
    found = _ADDRESS.fullmatch(serial)
    return found is not None and 0 < int(found["port"]) < 65536 and not serial.startswith(_OTHER_NAMES)


def parse_listing(text: str) -> list[PhoneListing]:
    """Rows of ``host:devices`` (tab after the serial) or of ``adb devices -l`` (padded with spaces)."""
    found: list[PhoneListing] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if not line.strip() or line.startswith(_BANNERS):
            continue
        serial, tab, state = line.partition("\t")
        if not tab:
            if len(line) > _LONGEST_ROW:
                continue
            padded = _PADDED.match(line)
            if padded is None:
                continue
            serial, state = padded["serial"], padded["state"]
        found.append(_row(serial.strip(), state.strip()))
    return found


def _row(serial: str, text: str) -> PhoneListing:
    if (shown := printable(serial, _LONGEST_SERIAL)) != serial:
        why = f"its serial number has more than {_LONGEST_SERIAL} characters, or some that nobody can type"
        return PhoneListing(shown, "unknown", why)
    if serial.startswith(_OTHER_NAMES):
        return PhoneListing(serial, "unknown", "its serial number is one of adb's names for other phones")
    if text.startswith(_NO_PERMISSIONS):
        detail = printable(text.removeprefix(_NO_PERMISSIONS).strip(), 300) or "see udev rules"
        return PhoneListing(serial, _NO_PERMISSIONS, f"this user may not open the USB device {detail}")
    word = text.split(maxsplit=1)[0] if text else ""
    if word not in _STATES:
        return PhoneListing(serial, "unknown", f"adb says {text[:80]!r}")
    return PhoneListing(serial, word, _REASONS.get(word, f"is in state {word}: boot it into Android"))
