"""Compiled SPIR-V modules, kept by what made them; one folder serves all compilers.

Each entry lies behind a checksum of its own: one that a crash or a full disk cut short is made again, never
used (field case G1-19). Entries appear by rename, so concurrent runs share a folder.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from orchestrator.domain.digest import sha256_hex

MAGIC = (0x07230203).to_bytes(4, "little")
_DIGEST_BYTES = 32


class ModuleCache:
    """Safe to use from several threads and processes at once."""

    def __init__(self, folder: Path) -> None:
        """``folder`` may be removed at any time."""
        self._folder = folder

    def get(self, made_by: Sequence[object], make: Callable[[], bytes]) -> bytes:
        """The module of ``made_by`` (compiler, version, options, source), by ``make`` where it is new."""
        key = sha256_hex(json.dumps(made_by).encode("ascii"))
        path = self._folder / key[:2] / key
        known = _intact(path)
        if known is not None:
            return known
        module = make()
        _store(path, module)
        return module


def _intact(path: Path) -> bytes | None:
    """The module of an entry whose checksum holds, else None."""
    try:
        entry = path.read_bytes()
    except OSError:
        return None
    digest, module = entry[:_DIGEST_BYTES], entry[_DIGEST_BYTES:]
    whole = module.startswith(MAGIC) and hashlib.sha256(module).digest() == digest
    return module if whole else None


def _store(path: Path, module: bytes) -> None:
    """Write, sync, rename. A cache that cannot be written costs time, not the run."""
    name = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:8]}-")
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(module).digest() + module)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError:
        if name:
            Path(name).unlink(missing_ok=True)
