"""A worker process of this host's agent: one device, one process, ended by its process id."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from orchestrator.domain.wire import to_json
from workers.discovery import Reachable

_LAST_WORDS = 400
_TAIL = 8192
"""Bytes; a log may be long."""


class WorkerChild:
    """``python -m workers`` for one device; its log is started anew with each child."""

    def __init__(self, found: Reachable, environment: Mapping[str, str], folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        told = folder / f"{name}.json"
        told.write_text(to_json(found), "utf-8")
        self._log = folder / f"{name}.log"
        # When the agent dies, however it dies, the worker finishes its batch and ends.
        setpriv = shutil.which("setpriv")
        prefix = [setpriv, "--pdeathsig", "TERM"] if setpriv else []
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "workers", "--found", str(told)],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the agent, which ends its workers in order
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended(self) -> int | None:
        """Exit code, or None while it runs."""
        return self._process.poll()

    def ask_to_stop(self) -> None:
        """After its batch."""
        if self._process.poll() is None:
            self._process.terminate()

    def kill(self) -> None:
        """At once. It is not waited for: one that hangs in a driver ends when that lets it."""
        if self._process.poll() is None:
            self._process.kill()

    def last_words(self) -> str:
        """The end of its log: the error that it died with."""
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
                lines = log.read().decode("utf-8", "replace").strip().splitlines()
        except OSError as e:
            return f"its log cannot be read: {e}"
        return lines[-1][-_LAST_WORDS:] if lines else "it wrote nothing"
