"""The history: a run is in it once and whole, whatever ends the process that puts it in."""

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from orchestrator.domain.errors import InfraError, UsageError
from orchestrator.domain.results import RunResults
from orchestrator.history import trial_files
from orchestrator.history.database import Database
from orchestrator.history.history import History
from orchestrator.history.query import one_series
from tests.results_fixture import case, device, info, passing, results, run_info, timing

RUN = "20261201T010000Z-nightly-aaaa"


def night(run_id: str = RUN, ns: int = 1_000_000) -> RunResults:
    """Two phones, two cases, 20 samples each."""
    cases = [case(seq=64), case(seq=128)]
    return results(
        run=run_info(run_id, suite="nightly"),
        devices=[device("one"), device("two")],
        infos=[info(c) for c in cases],
        trials=[
            passing(c, d, timing(ns, spread=0.001, n=20), run_id=run_id)
            for d in ("one", "two")
            for c in cases
        ],
    )


def files(history: History) -> list[str]:
    return sorted(p.name for p in history.files.glob("*"))


def test_a_run_is_stored_once_and_read_back(history: History) -> None:
    stored = night()
    assert history.store(stored)
    assert not history.store(stored), "the same again is nothing new"
    (run,) = history.runs()
    assert (run.run_id, run.rows, run.suite) == (RUN, 4, "nightly")
    assert files(history) == [run.file]
    case_id = stored.trials[0].case_id
    (row,) = one_series([history.path(run)], "one", case_id)
    timed = stored.trials[0].timing
    assert timed is not None
    assert row["samples_ns"] == timed.samples_ns
    assert row["verdict"] == "pass"
    assert row["measured"] == 20
    assert row["log_ns"] == pytest.approx(13.8155, abs=1e-3)


def test_a_later_result_of_the_run_takes_its_place(history: History) -> None:
    history.store(night())
    assert history.store(night(ns=2_000_000))
    (run,) = history.runs()
    assert files(history) == [run.file]
    assert history.check() == []


def test_a_crash_between_file_and_database_leaves_a_run_that_can_be_stored_again(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **_more: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Session, "merge", killed)
        with pytest.raises(KeyboardInterrupt):
            history.store(night())
    assert history.runs() == []
    (stray,) = history.check()
    assert "no run refers to it" in stray.why
    assert history.store(night())
    assert history.check() == []


def test_a_half_written_file_is_never_taken_for_a_run(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(trial_files, "_sync", full)
        with pytest.raises(OSError, match="No space"):
            history.store(night())
    assert files(history) == []
    assert history.runs() == []


def test_a_damaged_and_a_missing_file_are_named_with_what_to_do(history: History) -> None:
    history.store(night())
    history.store(night("20261202T010000Z-nightly-bbbb"))
    first, second = (history.path(run) for run in history.runs())
    first.write_bytes(first.read_bytes()[:-100] + b"x" * 100)
    second.unlink()
    found = {fault.what: (fault.why, fault.repair) for fault in history.check()}
    assert "damaged" in found[f"run {RUN}"][0]
    assert found[f"run {RUN}"][1] == f"tilefarm db store {RUN}"
    assert "missing" in found["run 20261202T010000Z-nightly-bbbb"][0]


def test_files_that_nobody_refers_to_go(history: History) -> None:
    history.store(night())
    stray = history.files / "20261130T010000Z-nightly-cccc-0123456789ab.parquet"
    stray.write_bytes(b"left by a crash")
    assert history.compact() == [stray.name]
    assert history.check() == []


def test_retention_drops_samples_and_keeps_summaries_and_pinned_runs(history: History) -> None:
    old, kept, young = (f"2026{day}T010000Z-nightly-aaaa" for day in ("0101", "0102", "1201"))
    for run_id, day in ((old, "2026-01-01"), (kept, "2026-01-02"), (young, "2026-12-01")):
        made = night(run_id)
        history.store(replace(made, run=replace(made.run, started_at=f"{day}T01:00:00+00:00")))
    history.baselines.pin("release-1", kept, "anna@desk", "what we shipped")
    assert history.drop_samples("2026-06-01") == ([old], [])
    assert history.drop_samples("2026-06-01") == ([], []), "once"
    assert history.check() == []
    case_id = night().trials[0].case_id
    rows = one_series([history.path(run) for run in history.runs()], "one", case_id)
    assert [row["samples_ns"] is None for row in rows] == [True, False, False]
    assert len({row["log_ns"] for row in rows}) == 1


def test_a_pinned_name_stays_with_its_run(history: History) -> None:
    history.store(night())
    history.store(night("20261202T010000Z-nightly-bbbb"))
    history.baselines.pin("release-1", RUN, "anna@desk", "")
    history.baselines.pin("release-1", RUN, "anna@desk", "said twice")
    with pytest.raises(UsageError, match=f"'release-1' is run {RUN}"):
        history.baselines.pin("release-1", "20261202T010000Z-nightly-bbbb", "ben@desk", "")
    with pytest.raises(UsageError, match="not in the history"):
        history.baselines.pin("release-2", "never", "ben@desk", "")
    assert history.baselines.pinned() == {"release-1": RUN}


def test_hostile_words_are_values(history: History) -> None:
    """G4-07: a device's and a driver's texts go in and come out as they are."""
    evil = "'); DROP TABLE runs; --\u202e<img src=x>"
    made = night()
    devices = [replace(d, name=evil, os_build=evil, serial=evil) for d in made.devices]
    history.store(replace(made, devices=devices, trials=[replace(t, driver=evil) for t in made.trials]))
    (run,) = history.runs()
    (row,) = one_series([history.path(run)], "one", made.trials[0].case_id)
    assert (row["driver"], row["os_build"]) == (evil, evil)
    assert one_series([history.path(run)], evil, evil) == []


def test_non_finite_errors_stay_what_they_are(history: History) -> None:
    made = night()
    nan, inf = float("nan"), float("inf")
    outputs = [replace(o, nmse=nan, max_abs=inf) for o in made.trials[0].outputs]
    history.store(replace(made, trials=[replace(made.trials[0], outputs=outputs)]))
    (run,) = history.runs()
    first = made.trials[0]
    (row,) = one_series([history.path(run)], first.device_id, first.case_id)
    assert json.dumps([row["nmse"], row["max_abs"]]) == "[NaN, Infinity]"


def test_a_database_of_a_later_version_is_refused(history: History, tmp_path: Path) -> None:
    with history.database.session() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(UsageError, match="a later version wrote its tables"):
        Database(f"sqlite:///{tmp_path}/tilefarm.db")


@pytest.mark.parametrize(
    ("url", "words"),
    [("not a url", "TILEFARM_DATABASE"), ("oracle+nothing://x", "TILEFARM_DATABASE")],
)
def test_a_url_that_is_none_says_what_is_expected(url: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Database(url)


def test_a_server_that_is_away_is_named_without_its_password() -> None:
    with pytest.raises(InfraError) as caught:
        Database("postgresql+psycopg://farm:secret@127.0.0.1:1/farm")
    assert "secret" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


def test_postgresql_holds_the_same(postgres: str, tmp_path: Path) -> None:
    there = History(postgres, tmp_path / "history")
    try:
        assert there.store(night())
        assert not there.store(night())
        there.baselines.pin("release-1", RUN, "anna@desk", "")
        assert there.store(night(ns=3_000_000))
        assert [(r.run_id, r.rows) for r in there.runs("nightly")] == [(RUN, 4)]
        assert there.check() == []
        Database(postgres).close()  # a second process finds its tables
    finally:
        there.close()


def test_a_backup_as_the_documentation_says_is_a_whole_history(history: History, tmp_path: Path) -> None:
    """The database first, by SQLite itself, while it is open; then the files, of which more may be there."""
    history.store(night())
    there = tmp_path / "backup"
    there.mkdir()
    with (
        closing(sqlite3.connect(tmp_path / "tilefarm.db")) as ours,
        closing(sqlite3.connect(there / "tilefarm.db")) as copy,
    ):
        ours.backup(copy)
    history.store(night("20261202T010000Z-nightly-bbbb"))
    shutil.copytree(history.folder, there / "history")
    restored = History(f"sqlite:///{there}/tilefarm.db", there / "history")
    try:
        assert [run.run_id for run in restored.runs()] == [RUN]
        (stray,) = restored.check()
        assert stray.repair.endswith("tilefarm db store 20261202T010000Z-nightly-bbbb")
        assert restored.store(night("20261202T010000Z-nightly-bbbb"))
        assert restored.check() == []
    finally:
        restored.close()


def test_storing_a_run_again_keeps_its_verdicts_and_brings_no_dropped_sample_back(history: History) -> None:
    """As `tilefarm db store` without a run does, after retention and after an upgrade."""
    history.store(night())
    said = [{"device_id": "one", "case_id": "c", "speed": 2, "accepted": True}]
    history.store_verdicts(RUN, said)
    assert history.drop_samples("2027-01-01") == ([RUN], [])
    (before,) = history.runs()
    assert not history.store(night())
    (after,) = history.runs()
    assert (after.file, after.samples_until, after.verdicts) == (
        before.file,
        before.samples_until,
        before.verdicts,
    )
    assert history.check() == []
    assert history.store(night(ns=2_000_000)), "other results are another matter"
    assert history.runs()[0].verdicts == ""
