"""The end of a run writes its report, whatever the history and earlier runs are like."""

import errno
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

import reports.write
from orchestrator.cli import finish
from orchestrator.cli.finish import finish_run
from orchestrator.cli.judged import JudgedRun
from orchestrator.domain.gate import Gate
from orchestrator.domain.settings import Settings
from orchestrator.execution.run_folder import RunFolder, load_results
from orchestrator.history.history import History
from tests.results_fixture import TODAY
from tests.unit.cli.test_runs import NEW, OLD, ended
from tests.unit.reports.sample_findings import sample_findings


def a_full_disk(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOSPC, "No space left on device")


def a_fault(*_: object, **__: object) -> NoReturn:
    raise KeyError("of ours")


@pytest.mark.parametrize(("happens", "why"), [(a_full_disk, "No space left"), (a_fault, "of ours")])
def test_a_history_that_breaks_costs_no_report(
    happens: object,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = ended(tmp_path, NEW)
    monkeypatch.setattr(History, "store", happens)
    finished = finish_run(
        folder, load_results(folder.path), Settings(out=tmp_path, database=""), TODAY, Gate()
    )
    assert finished.reports.index.is_file()
    said = " ".join(capsys.readouterr().err.split())
    assert "the history says nothing of this run" in said
    assert why in said
    assert f"`tilefarm db store {NEW}`, then judge it with `tilefarm report {NEW}`" in said


def test_an_earlier_run_that_cannot_be_read_costs_the_comparison_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = ended(tmp_path, OLD)
    folder = ended(tmp_path, NEW)
    document = folder.results_json.read_text().replace('"previous_run":""', f'"previous_run":"{OLD}"')
    assert OLD in document
    folder.results_json.write_text(document)
    old.results_json.write_text('{"format": 99}')
    finished = finish_run(
        folder, load_results(folder.path), Settings(out=tmp_path, database=""), TODAY, Gate()
    )
    assert finished.reports.index.is_file()
    assert "the report compares with no earlier run" in " ".join(capsys.readouterr().err.split())


def test_findings_that_cannot_be_shown_cost_their_pages_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = sample_findings()
    run = replace(sample.results, previous_run="")

    def judged(*_: object, **__: object) -> JudgedRun:
        return JudgedRun(sample.findings)

    monkeypatch.setattr(finish, "judge_ended", judged)
    monkeypatch.setattr(reports.write, "render_changes", a_fault)
    finished = finish_run(RunFolder(tmp_path), run, Settings(out=tmp_path), TODAY, Gate(fail_on="regressed"))
    assert finished.reports.index.is_file()
    assert finished.reports.changes == {}
    assert finished.summary.exit_code != 0
    assert "the reports say nothing of the history: KeyError" in " ".join(capsys.readouterr().err.split())
