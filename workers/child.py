"""A worker process of an agent or of a command: one device, one process, ended by its process id."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from orchestrator.domain.wire import to_json
from workers.discovery import Reachable
from workers.lifetime import dies_with_us

_LAST_WORDS = 400
_TAIL = 8192
"""Bytes; a log may be long."""


class WorkerChild:
    """``python -m workers`` for one device. It is told what discovery found, so that no GPU is probed twice.

    When the process that started it dies, however it dies, it finishes its batch and ends.

    Args:
        environment: beside this process's own.
        folder: where ``NAME.log`` and what it is told lie.
        keep_log: a start adds to the log of the one before; else each has its own.
        own_session: Ctrl-C is for the process that started it, which ends its workers in order.
    """

    def __init__(
        self,
        found: Reachable,
        environment: Mapping[str, str],
        folder: Path,
        name: str,
        *,
        keep_log: bool = False,
        own_session: bool = False,
    ) -> None:
        self.found = found
        self._environment = environment
        self._told = folder / f"{name}.json"
        self._log = folder / f"{name}.log"
        self._keep_log = keep_log
        self._own_session = own_session
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """0 before it is started."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Also again, when the process before has ended."""
        self._told.parent.mkdir(parents=True, exist_ok=True)
        self._told.write_text(to_json(self.found), "utf-8")
        with self._log.open("ab" if self._keep_log else "wb") as log:
            self._process = subprocess.Popen(
                dies_with_us([sys.executable, "-m", "workers", "--found", str(self._told)]),
                env={**os.environ, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=self._own_session,
            )

    def ended(self) -> int | None:
        """Exit code, or None while it runs, or before it is started."""
        return self._process.poll() if self._process else None

    def ask_to_stop(self) -> None:
        """After its batch."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def kill(self) -> None:
        """At once. It is not waited for: one that hangs in a driver ends when that lets it."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def wait(self, deadline: float) -> None:
        """Until it has ended; at ``deadline`` (monotonic) it is killed."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def last_words(self) -> str:
        """The end of its log: the error that it died with."""
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
                lines = log.read().decode("utf-8", "replace").strip().splitlines()
        except FileNotFoundError:
            return "it wrote nothing"
        except OSError as e:
            return f"its log cannot be read: {e}"
        return lines[-1][-_LAST_WORDS:] if lines else "it wrote nothing"
