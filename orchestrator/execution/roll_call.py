"""Phones that a night expects: those that took part in one of the last nights of its suite.

A phone that is not there any more is missing in the report, not left out of it, for a fortnight or until
somebody says that it will not come back (``tilefarm nights --forget``).
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import WireError
from orchestrator.domain.moment import parse_time
from orchestrator.domain.results import Missing
from orchestrator.domain.wire import from_json, to_json
from orchestrator.execution.run_folder import write_atomically

EXPECTED_FOR = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Seen:
    """When a device took part last."""

    name: str
    """For people."""
    serial: str
    run_id: str
    at: str
    """UTC, ISO 8601."""


@dataclass(frozen=True, slots=True)
class Roll:
    """Of one suite, by device id."""

    seen: dict[str, Seen] = field(default_factory=dict[str, Seen])

    def absent(
        self, there: Collection[str], named: Collection[str], now: datetime, whereabouts: Callable[[str], str]
    ) -> list[Missing]:
        """Devices that are expected and neither there nor named as missing already.

        Args:
            there: ids of devices that take part.
            named: ids and serials of devices that are missing, with a reason, already.
            whereabouts: what the farm knows of a device id; empty: nothing.
        """
        return [
            Missing(
                device_id,
                "",
                f"{seen.name} took part in run {seen.run_id} and is not served now: "
                f"{whereabouts(device_id) or 'no agent knows of it'}",
            )
            for device_id, seen in self.seen.items()
            if device_id not in there
            and not {device_id, seen.serial} & set(named)
            and now - parse_time(seen.at) <= EXPECTED_FOR
        ]

    def after(self, devices: Iterable[DeviceRecord], run_id: str, now: str) -> "Roll":
        """With those that take part now; what is expected no more is dropped."""
        kept = {i: s for i, s in self.seen.items() if parse_time(now) - parse_time(s.at) <= EXPECTED_FOR}
        return Roll(kept | {d.device_id: Seen(d.name, d.serial, run_id, now) for d in devices})


class Rolls:
    """``OUT/nights/phones-SUITE.json``."""

    def __init__(self, out: Path) -> None:
        self._folder = out / "nights"

    def get(self, suite: str) -> Roll:
        """Empty before a suite's first night, and where it was written by another version."""
        return self._read(self._path(suite))

    def put(self, suite: str, roll: Roll) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path(suite), to_json(roll))

    def forget(self, name: str) -> list[str]:
        """Expect the device with this id or serial in no suite any more; returns the ids that it had."""
        found: set[str] = set()
        for path in sorted(self._folder.glob("phones-*.json")):
            roll = self._read(path)
            gone = {i for i, seen in roll.seen.items() if name in (i, seen.serial)}
            if gone:
                write_atomically(path, to_json(Roll({i: s for i, s in roll.seen.items() if i not in gone})))
            found |= gone
        return sorted(found)

    def _path(self, suite: str) -> Path:
        return self._folder / f"phones-{suite}.json"

    @staticmethod
    def _read(path: Path) -> Roll:
        try:
            return from_json(Roll, path.read_bytes(), str(path))
        except (FileNotFoundError, WireError):
            return Roll()
