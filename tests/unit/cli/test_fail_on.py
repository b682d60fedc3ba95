"""`--fail-on` from the options to the exit code, with a history that holds and one that does not."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.cli import finish
from orchestrator.cli.finish import finish_run
from orchestrator.cli.judged import JudgedRun
from orchestrator.domain.gate import FailOn, Gate
from orchestrator.domain.settings import Settings
from orchestrator.execution.run_folder import RunFolder, load_results
from tests.results_fixture import TODAY
from tests.unit.cli.conftest import Invoke
from tests.unit.cli.test_runs import NEW, OLD, ended
from tests.unit.reports.sample_findings import sample_findings


@pytest.mark.parametrize(("started", "asked", "code"), [
    ("wrong", None, 1),
    ("never", None, 0),
    ("never", "wrong", 1),
    ("wrong", "never", 0),
    ("wrong", "regressed", 1),
])  # fmt: skip
def test_a_report_asks_as_the_run_was_started_unless_told_otherwise(
    started: FailOn, asked: FailOn | None, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample's night holds regressions, and trials beyond their tolerance."""
    sample = sample_findings()
    run = replace(sample.results, run=replace(sample.results.run, fail_on=started), previous_run="")

    def judged(*_: object, **__: object) -> JudgedRun:
        return JudgedRun(sample.findings)

    monkeypatch.setattr(finish, "judge_ended", judged)
    finished = finish_run(RunFolder(tmp_path), run, Settings(out=tmp_path), TODAY, Gate(fail_on=asked))
    assert finished.summary.exit_code == code
    assert "of speed against the history" in finished.summary.sentence
    assert f'tilefarm_run_exit_code{{suite="nightly"}} {code}\n' in (tmp_path / "metrics.prom").read_text()


@pytest.mark.parametrize(("gate", "code"), [("wrong", 0), ("never", 0), ("regressed", 3)])
def test_a_history_that_cannot_be_used_is_no_pass(
    gate: str, code: int, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(tmp_path / "out", OLD)
    ended(tmp_path / "out", NEW)
    (tmp_path / "broken.db").write_text("no database " * 1_000)
    monkeypatch.setenv("TILEFARM_DATABASE", f"sqlite:///{tmp_path / 'broken.db'}")
    with pytest.raises(sqlite3.DatabaseError):
        sqlite3.connect(tmp_path / "broken.db").execute("select * from sqlite_master")
    done = invoke("report", NEW, "--fail-on", gate, "--json")
    assert done.exit_code == code, done.exception
    assert json.loads(done.stdout)["exit_code"] == code
    assert "warning: the history says nothing of this run" in " ".join(done.stderr.split())


def test_a_young_history_has_nothing_to_fail_on(tmp_path: Path, invoke: Invoke) -> None:
    ended(tmp_path / "out", NEW)
    assert invoke("report", NEW, "--fail-on", "regressed").exit_code == 0


def test_a_run_of_an_older_version_fails_for_wrong_kernels(tmp_path: Path) -> None:
    """Its results.json says nothing of it."""
    folder = ended(tmp_path, NEW)
    document = json.loads(folder.results_json.read_text())
    del document["run"]["fail_on"]
    folder.results_json.write_text(json.dumps(document))
    assert load_results(folder.path).run.fail_on == "wrong"
