"""Exclusive use of a device: a worker's lease for a batch, a person's hold for as long as it takes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lease:
    """Ends by itself in Redis time unless it is renewed."""

    device_id: str
    holder: str
    """Worker id."""
    token: int
    """Fencing token: larger than that of every lease and hold of the device before. A result that comes with
    an older one than the newest is refused: its writer had lost the device without noticing."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A device that a person keeps for themselves: no worker touches it until it is released."""

    device_id: str
    by: str
    """``user@host`` of the person."""
    why: str
    since: str
    """UTC, ISO 8601."""
    serial: str = ""
    host: str = ""
    """Where the device hangs: a worker that starts there must not even open it. Empty: not known."""

    @property
    def sentence(self) -> str:
        return f"held by {self.by} since {self.since}: {self.why}"
