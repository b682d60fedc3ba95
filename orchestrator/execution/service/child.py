"""A child process of the service, which carries one run out."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from workers.lifetime import dies_with_us

_LAST_WORDS = 400
_TAIL = 8192
"""Bytes; a log may be long."""


class RunChild:
    """``tilefarm run OPTIONS --unattended --json``; what it says at its end is in ``outcome``.

    When the service dies, however it dies, it is told to end, and leaves its run to be gone on with. (The
    kernel tells it when the thread ends that started it: that must be the service's main thread.)
    """

    def __init__(self, options: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "dispatch.log"
        words = ["run", *options, "--unattended", "--json"]
        with self._log.open("ab") as log, outcome_file(folder).open("wb") as outcome:
            self._process = subprocess.Popen(
                dies_with_us([sys.executable, "-m", "orchestrator.cli.main", *words]),
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=outcome,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the service, which ends its children in order
            )

    def ended(self) -> int | None:
        return self._process.poll()

    def ask_to_stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()

    def last_words(self) -> str:
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
                lines = log.read().decode("utf-8", "replace").strip().splitlines()
        except OSError as e:
            return f"its log cannot be read: {e}"
        return lines[-1][-_LAST_WORDS:] if lines else "it wrote nothing"


def outcome_file(folder: Path) -> Path:
    """Emptied when a child starts: what is whole there is the last child's."""
    return folder / "outcome.json"
