"""``OUT/nights``: what became of each night, and until when its orchestrator has looked.

``NIGHT_ID.json`` is made once and for all: whoever makes it has the night. ``NIGHT_ID.lock`` is held by the
process that carries the night out, so that two never do. After kill -9 at any moment all can be read.
"""

import fcntl
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from orchestrator.domain.errors import UsageError, WireError
from orchestrator.domain.night import NIGHT_ID, NightRecord
from orchestrator.domain.wire import from_json, to_json
from orchestrator.execution.run_folder import write_atomically

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Kept:
    """What an orchestrator remembers of its schedule."""

    keeper: str
    """Id of this folder: a container's host name is another one tomorrow."""
    schedule: str
    """As it was set when it looked last."""
    set_at: str
    """UTC, ISO 8601, as both: when it was first seen; it has no nights before."""
    looked_at: str
    """Every night until then has a record."""


class NightFolder:
    def __init__(self, out: Path) -> None:
        self.path = out / "nights"

    def kept(self) -> Kept | None:
        """None: this farm has had no schedule yet."""
        path = self.path / "schedule.json"
        return from_json(Kept, path.read_bytes(), str(path)) if path.is_file() else None

    def keep(self, kept: Kept) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path / "schedule.json", to_json(kept))

    def create(self, record: NightRecord) -> bool:
        """False: the night has a record already. It is on disk when this returns."""
        self.path.mkdir(parents=True, exist_ok=True)
        whole = self.path / f".{record.night}-{secrets.token_hex(4)}"
        write_atomically(whole, to_json(record))
        try:
            self._of(record.night).hardlink_to(whole)  # in one step, and never over another one
        except FileExistsError:
            return False
        finally:
            whole.unlink()
        return True

    def replace(self, record: NightRecord) -> None:
        write_atomically(self._of(record.night), to_json(record))

    def remove(self, night: str) -> None:
        self._of(night).unlink(missing_ok=True)

    def get(self, night: str) -> NightRecord:
        """
        Raises:
            UsageError: no such night, or a record that cannot be read.
        """
        if not NIGHT_ID.fullmatch(night) or not self._of(night).is_file():
            raise UsageError(
                f"{night}: no such night in {self.path}; `tilefarm nights` shows those there are"
            )
        try:
            return from_json(NightRecord, self._of(night).read_bytes(), str(self._of(night)))
        except WireError as e:
            raise UsageError(str(e)) from e

    def all(self) -> dict[str, NightRecord]:
        """By night id, oldest first; one that cannot be read (of another version) is left out."""
        found: dict[str, NightRecord] = {}
        for path in sorted(self.path.glob("*.json")):
            if NIGHT_ID.fullmatch(path.stem):
                try:
                    found[path.stem] = self.get(path.stem)
                except UsageError as e:
                    log.warning("night not read", error=str(e))
        return found

    @contextmanager
    def alone(self, name: str) -> Generator[bool]:
        """Yields whether this process has ``name`` (a night id, or ``keeper``) to itself meanwhile.

        Ends with the process, however it ends.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            yield False
            return
        try:
            yield True
        finally:
            os.close(handle)

    def _of(self, night: str) -> Path:
        return self.path / f"{night}.json"
