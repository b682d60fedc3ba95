"""A copy of a run's report for CI to keep: pages and what machines read, without what only a resume needs."""

import shutil
from pathlib import Path

from orchestrator.domain.errors import UsageError

INTERNAL = ("manifest.json", "prepared.jsonl", "trials.jsonl", "*.part", "*.lock")
"""Of the run's folder, what is no report."""
MARK = "results.json"
"""In every copy: a folder with it may be replaced by the next one."""


def check_room(folder: Path | None) -> None:
    """Before anything is measured.

    Raises:
        UsageError: something else is there.
    """
    if folder is None or not folder.exists():
        return
    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / MARK).is_file()):
        raise UsageError(
            f"--artifacts {folder}: holds something that is no copy of a report; name a new folder"
        )


def copy_report(run: Path, folder: Path | None) -> None:
    """``folder`` is the report afterwards, and of this run alone.

    Raises:
        OSError: it cannot be written.
    """
    if folder is None:
        return
    check_room(folder)
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(run, folder, ignore=shutil.ignore_patterns(*INTERNAL))
