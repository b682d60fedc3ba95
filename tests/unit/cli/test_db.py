"""``tilefarm db``: what it does to a history and what it says."""

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.domain.results import RunResults
from orchestrator.domain.wire import to_json
from tests.unit.cli.conftest import Invoke
from tests.unit.history.test_history import RUN, night

DAYS = str((datetime.now(UTC).date() - date(2026, 6, 1)).days)
"""Between the two runs."""
OLD = "20250101T010000Z-nightly-bbbb"


def ended(out: Path, results: RunResults) -> None:
    folder = out / "runs" / results.run.run_id
    folder.mkdir(parents=True)
    (folder / "results.json").write_text(to_json(results))


@pytest.fixture
def out(tmp_path: Path, invoke: Invoke) -> Path:
    """Two runs, both in the history."""
    for run_id in (OLD, RUN):
        ended(tmp_path / "out", night(run_id))
    stored = invoke("db", "store")
    assert stored.exit_code == 0
    assert "2 of 2 runs are new" in stored.stderr
    return tmp_path / "out"


def trial_file(out: Path, run_id: str) -> Path:
    (path,) = (out / "history" / "runs").glob(f"{run_id}-*.parquet")
    return path


def test_runs_are_stored_once(out: Path, invoke: Invoke) -> None:
    assert trial_file(out, RUN).is_file()
    assert "0 of 2 runs are new" in invoke("db", "store").stderr
    assert "0 of 1 runs are new" in invoke("db", "store", RUN).stderr


def test_results_of_another_format_are_left_out_and_named(out: Path, invoke: Invoke) -> None:
    path = out / "runs" / RUN / "results.json"
    path.write_text(
        path.read_text().replace('"format": 1', '"format": 2').replace('"format":1', '"format":2')
    )
    said = invoke("db", "store")
    assert said.exit_code == 0
    assert "left out" in said.stderr
    assert "results of format 2; this Tilefarm reads 1" in " ".join(said.stderr.split())
    assert isinstance(invoke("db", "store", RUN).exception, UsageError)


def test_check_says_what_is_wrong_and_what_to_do(out: Path, invoke: Invoke) -> None:
    assert invoke("db", "check").stdout == "2 runs, 8 trials, 0 faults\n"
    trial_file(out, RUN).unlink()
    found = invoke("db", "check")
    assert found.exit_code == 3
    assert f"run {RUN}: " in found.stdout
    assert f"Next: tilefarm db store {RUN}" in found.stdout
    (fault,) = json.loads(invoke("db", "check", "--json").stdout)["faults"]
    assert fault["repair"] == f"tilefarm db store {RUN}"
    invoke("db", "store", RUN)
    assert invoke("db", "check").exit_code == 0


def test_compact_removes_strays_and_drops_old_samples_but_not_of_pinned_runs(
    out: Path, invoke: Invoke
) -> None:
    (out / "history" / "runs" / "stray.parquet").write_bytes(b"")
    assert "1 files removed; raw samples of 0 runs dropped" in invoke("db", "compact").stderr
    assert invoke("db", "pin", "release-1", OLD, "--note", "shipped").exit_code == 0
    assert "of 0 runs dropped" in invoke("db", "compact", "--keep-samples-days", DAYS).stderr
    older = "20240101T010000Z-nightly-cccc"
    ended(out, night(older))
    invoke("db", "store")
    assert "of 1 runs dropped" in invoke("db", "compact", "--keep-samples-days", DAYS).stderr
    assert invoke("db", "check").exit_code == 0


def test_what_has_a_name_is_listed_and_a_name_is_given_back(out: Path, invoke: Invoke) -> None:
    assert "No baseline has a name" in invoke("db", "pins").stdout
    invoke("db", "pin", "release-1", OLD, "--note", "shipped")
    assert f"release-1: run {OLD}, pinned by " in invoke("db", "pins").stdout
    (listed,) = json.loads(invoke("db", "pins", "--json").stdout)["baselines"]
    assert (listed["name"], listed["run_id"], listed["note"]) == ("release-1", OLD, "shipped")
    taken = invoke("db", "pin", "release-1", RUN).exception
    assert isinstance(taken, UsageError)
    assert "tilefarm db unpin release-1" in str(taken)
    wrong = invoke("db", "unpin", "release").exception
    assert isinstance(wrong, UsageError)
    assert "Pinned: release-1" in str(wrong)
    assert f"no longer run {OLD}" in invoke("db", "unpin", "release-1").stderr
    assert "of 1 runs dropped" in invoke("db", "compact", "--keep-samples-days", DAYS).stderr


def test_what_is_damaged_outlives_retention_as_it_is(out: Path, invoke: Invoke) -> None:
    trial_file(out, OLD).write_bytes(b"")
    done = invoke("db", "compact", "--keep-samples-days", DAYS)
    assert done.exit_code == 3
    assert f"left as it is: run {OLD}: " in done.stdout
    assert trial_file(out, OLD).read_bytes() == b""


def test_a_series_is_exported_with_its_samples(out: Path, invoke: Invoke) -> None:
    first = night().trials[0]
    told = json.loads(invoke("db", "export", first.device_id, first.case_id).stdout)
    assert [t["run_id"] for t in told["trials"]] == [OLD, RUN]
    assert first.timing is not None
    assert told["trials"][1]["samples_ns"] == first.timing.samples_ns
    assert out.is_dir()
    assert isinstance(invoke("db", "export", "nobody", first.case_id).exception, UsageError)


def test_a_spreadsheet_takes_no_word_for_a_formula(tmp_path: Path, invoke: Invoke) -> None:
    made = night()
    evil = "=HYPERLINK(0)"
    ended(tmp_path / "out", replace(made, trials=[replace(t, driver=evil) for t in made.trials]))
    invoke("db", "store")
    first = made.trials[0]
    told = invoke("db", "export", first.device_id, first.case_id, "--csv").stdout
    (row,) = csv.DictReader(io.StringIO(told))
    assert row["driver"] == f"'{evil}"
    assert row["measured"] == "20"
    assert "samples_ns" not in row
