"""What `tilefarm db check` finds, each with a repair that helps."""

import fcntl
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.errors import InfraError, UsageError
from orchestrator.history import trial_files
from orchestrator.history.database import StoredRun
from orchestrator.history.history import Fault, History
from orchestrator.history.query import night_table, one_series
from orchestrator.history.trial_rows import COLUMNS, rows_of
from tests.unit.history.test_history import RUN, night

OTHER = "20261202T010000Z-nightly-bbbb"
SAID = [
    {"device_id": t.device_id, "case_id": t.case_id, "speed": 2, "accepted": True} for t in night().trials
]


@pytest.fixture
def stored(history: History) -> History:
    """Two nights, the first of them judged."""
    history.store(night())
    history.store_verdicts(RUN, SAID)
    history.store(night(OTHER))
    assert history.check() == []
    return history


def the_fault(history: History) -> Fault:
    (fault,) = history.check()
    return fault


def flip(path: Path, at: int) -> None:
    """One bit of one byte."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


@pytest.mark.parametrize("part", [0.001, 0.3, 0.6, 0.999])
def test_a_flipped_bit_is_found_and_storing_the_run_again_repairs_it(stored: History, part: float) -> None:
    path = stored.path(stored.runs()[0])
    flip(path, int(part * path.stat().st_size))
    fault = the_fault(stored)
    assert fault.what == f"run {RUN}"
    assert "damaged" in fault.why
    assert fault.repair == f"tilefarm db store {RUN}"
    stored.store(night())
    assert stored.check() == []


def test_a_row_without_its_file_is_found_and_storing_the_run_again_repairs_it(stored: History) -> None:
    stored.path(stored.runs()[0]).unlink()
    fault = the_fault(stored)
    assert (fault.what, "missing" in fault.why) == (f"run {RUN}", True)
    with pytest.raises(InfraError, match="tilefarm db check"):
        night_table({run.run_id: stored.path(run) for run in stored.runs()})
    stored.store(night())
    assert stored.check() == []


@pytest.mark.parametrize("damage", ["flipped", "deleted"])
def test_damaged_verdicts_are_found_and_judging_the_run_again_repairs_them(
    stored: History, damage: str
) -> None:
    (path,) = stored.verdict_files.glob("*.parquet")
    if damage == "flipped":
        flip(path, path.stat().st_size // 2)
    else:
        path.unlink()
    fault = the_fault(stored)
    assert fault.what == f"verdicts of run {RUN}"
    assert fault.repair == f"tilefarm report {RUN}"
    stored.store_verdicts(RUN, SAID)  # as judging it does
    assert stored.check() == []


@pytest.mark.parametrize("folder", ["runs", "verdicts"])
def test_a_file_that_nothing_refers_to_is_found_and_compact_removes_it(stored: History, folder: str) -> None:
    stray = stored.folder / folder / "20261130T010000Z-nightly-cccc-0123456789ab.parquet"
    stray.write_bytes(b"left by a crash")
    fault = the_fault(stored)
    assert (fault.what, fault.repair) == (stray.name, "tilefarm db compact")
    assert stored.compact() == [stray.name]
    assert stored.check() == []


def test_compact_with_another_database_than_the_farm_s_removes_no_night(
    stored: History, tmp_path: Path
) -> None:
    """As in a shell that lacks the TILEFARM_DATABASE of the nightly job."""
    other = History(f"sqlite:///{tmp_path}/other.db", stored.folder)
    try:
        assert other.compact() == []
        repairs = {fault.repair for fault in other.check()}
        assert repairs == {f"check TILEFARM_DATABASE, then tilefarm db store {run}" for run in (RUN, OTHER)}
    finally:
        other.close()
    assert stored.check() == []


def test_retention_reads_files_of_an_earlier_version(stored: History) -> None:
    older = {name: kind for name, kind in COLUMNS.items() if name not in ("battery_mc", "cosine")}
    name, digest = trial_files.write(stored.files, RUN, older, rows_of(night()))
    with stored.database.session() as session:
        run = session.get_one(StoredRun, RUN)
        run.file, run.sha256 = name, digest
    stored.compact()
    assert stored.drop_samples("2027-01-01") == ([RUN, OTHER], [])
    assert stored.check() == []


def test_a_run_that_is_just_put_in_is_no_fault(stored: History) -> None:
    """Its file is there, its row is not yet: whoever stores it has the lock."""
    half = stored.files / "20261203T010000Z-nightly-cccc-0123456789ab.parquet"
    with ThreadPoolExecutor() as pool, (stored.folder / ".lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        half.write_bytes(b"")
        found = pool.submit(stored.check)
        wait([found], timeout=0.5)
        half.unlink()  # stands for the row that is committed then
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert found.result() == []


def test_retention_gives_no_damaged_file_a_new_digest_and_goes_on(stored: History) -> None:
    """One bit may change a number and leave the file readable."""
    broken, gone = (stored.path(run) for run in stored.runs())
    data = bytearray(broken.read_bytes())
    data[len(data) // 2] ^= 1
    broken.write_bytes(data)
    dropped, faults = stored.drop_samples("2027-01-01")
    assert dropped == [OTHER]
    assert [(f.what, f.repair) for f in faults] == [(f"run {RUN}", f"tilefarm db store {RUN}")]
    assert broken.read_bytes() == bytes(data)
    assert not gone.exists()
    assert [f.what for f in stored.check()] == [f"run {RUN}"]


def test_a_file_of_a_later_format_is_refused_by_name(
    stored: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(trial_files, "FORMAT", 2)
        stored.store(replace(night(ns=3_000_000)))
    assert "of format 2; this Tilefarm reads 1" in the_fault(stored).why


def test_files_of_an_earlier_and_of_a_later_version_are_read_together(history: History) -> None:
    """Columns that a file lacks are empty, columns that nobody asks for are left."""
    history.store(night())
    older = {name: kind for name, kind in COLUMNS.items() if name not in ("hot", "cosine", "compile_ns")}
    later = COLUMNS | {"watts": "real"}
    made = night(OTHER)
    third = "20261203T010000Z-nightly-cccc"
    paths = {RUN: history.path(history.runs()[0])}
    for run_id, columns in ((OTHER, older), (third, later)):
        rows = [row | {"run_id": run_id, "watts": 1.5} for row in rows_of(made)]
        name, _ = trial_files.write(history.files, run_id, columns, rows)
        paths[run_id] = history.files / name
    table = night_table(paths)
    assert table.runs == list(paths)
    assert (table.measured == 20).all()
    first = made.trials[0]
    rows = one_series(list(paths.values()), first.device_id, first.case_id)
    assert [row["cosine"] for row in rows] == [1.0, None, 1.0]


def test_a_night_of_an_earlier_version_alone_is_read(history: History) -> None:
    made = night()
    older = {name: kind for name, kind in COLUMNS.items() if name != "cosine"}
    name, _ = trial_files.write(history.files, RUN, older, rows_of(made))
    table = night_table({RUN: history.files / name})
    assert (table.measured == 20).all()


def test_a_run_without_trials_is_refused(history: History) -> None:
    with pytest.raises(UsageError, match="no trials to keep"):
        history.store(replace(night(), trials=[]))
