"""Kill -9 in the middle of storing a run: what was there before is there, and storing again is the repair."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.history import trial_files
from orchestrator.history.history import History
from orchestrator.history.query import one_series
from tests.unit.history.test_history import RUN, files, night

OTHER = "20261202T010000Z-nightly-bbbb"
CHILD = """
import os, signal, sys
from pathlib import Path
from sqlalchemy.engine import Transaction
from sqlalchemy.orm import Session
from orchestrator.history import trial_files
from orchestrator.history.history import History
from tests.unit.history.test_history import RUN, night

folder, where, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
history = History(f"sqlite:///{folder}/tilefarm.db", folder / "history")
owners = {
    "write_table": trial_files._parquet, "_sync": trial_files, "replace": Path, "unlink": Path,
    "flush": Session, "commit": Transaction,
}
owner = owners[where.removeprefix("after ")]
name, real, calls = where.removeprefix("after "), None, 0
real = getattr(owner, name)

def killed(*given, **words):
    global calls
    calls += 1
    if calls < count:
        return real(*given, **words)
    if where.startswith("after "):
        real(*given, **words)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(owner, name, killed)
history.store(night(ns=2_000_000))
"""
POINTS = (
    ("write_table", 1),
    ("after write_table", 1),
    ("after _sync", 1),
    ("after replace", 1),
    ("after _sync", 2),
    ("flush", 1),
    ("flush", 3),
    ("after commit", 2),
    ("unlink", 2),
)
"""Of storing, in its order: nothing on disk, a partial file, a synced one, a renamed one, its folder synced,
in the transaction, committed, the old file not yet removed."""


def killed_at(folder: Path, where: str, count: int) -> None:
    root = Path(__file__).parents[3]
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), where, str(count)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()


@pytest.mark.parametrize(("where", "count"), POINTS)
def test_a_new_run_is_in_whole_or_not_at_all(
    history: History, tmp_path: Path, where: str, count: int
) -> None:
    history.store(night(OTHER))
    if where == "unlink":
        history.store(night())  # a file to be replaced
    killed_at(tmp_path, where, count)
    there = {run.run_id for run in history.runs()}
    assert OTHER in there
    assert all("no run refers to it" in fault.why for fault in history.check())
    history.store(night(ns=2_000_000))
    history.compact()
    assert history.check() == []
    assert files(history) == sorted(run.file for run in history.runs())
    assert {run.run_id for run in history.runs()} == {RUN, OTHER}


@pytest.mark.parametrize(
    ("where", "count"), [("after _sync", 2), ("flush", 3), ("after commit", 2), ("unlink", 2)]
)
def test_the_result_that_was_there_before_is_read_until_the_new_one_is_committed(
    history: History, tmp_path: Path, where: str, count: int
) -> None:
    history.store(night())
    killed_at(tmp_path, where, count)
    (run,) = history.runs()
    assert trial_files.check(history.path(run), run.sha256) == ""
    made = night().trials[0]
    (row,) = one_series([history.path(run)], made.device_id, made.case_id)
    committed = where in ("after commit", "unlink")
    assert (max(row["samples_ns"]) > 1_500_000) == committed


def test_a_file_is_synced_then_renamed_then_its_folder_is_synced(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this order a power cut leaves a whole file or none; a new folder is synced in its own one."""
    said: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def note_sync(handle: int) -> None:
        said.append(f"sync {Path(f'/proc/self/fd/{handle}').readlink().name[:17]}")
        fsync(handle)

    def note_replace(path: Path, target: Path) -> Path:
        said.append("rename")
        return replace(path, target)

    history.folder.mkdir()
    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_replace)
    history.store(night())
    assert said == ["sync history", f"sync .{RUN[:16]}", "rename", "sync runs"]
