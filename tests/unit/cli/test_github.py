"""`tilefarm report` in a job of GitHub Actions, and outside of one."""

import json
from pathlib import Path

import pytest

from orchestrator.cli.github import kernel_files
from orchestrator.cli.options import BUILT_IN_KERNELS
from reports.build import build_report
from tests.farm import REPOSITORY
from tests.results_fixture import TODAY, case, passing, results
from tests.unit.cli.conftest import Invoke
from tests.unit.cli.test_runs import NEW, ended


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The job's summary file."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(REPOSITORY))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    return tmp_path / "summary"


def test_a_job_gets_annotations_and_its_summary(job: Path, tmp_path: Path, invoke: Invoke) -> None:
    folder = ended(tmp_path / "out", NEW)
    job.write_text("before\n")
    done = invoke("report", NEW)
    assert done.stderr.startswith("::notice title=Tilefarm%2C smoke::No unexpected failure")
    assert job.read_text() == "before\n" + (folder.path / "summary.md").read_text()


def test_json_on_stdout_stays_json(job: Path, tmp_path: Path, invoke: Invoke) -> None:
    ended(tmp_path / "out", NEW)
    done = invoke("report", NEW, "--json")
    assert json.loads(done.stdout)["exit_code"] == 0
    assert "::notice " in done.stderr


def test_elsewhere_nobody_is_told_unless_asked(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    ended(tmp_path / "out", NEW)
    assert "::" not in invoke("report", NEW).stderr
    assert "::notice " in invoke("report", NEW, "--github").stderr


def test_a_job_may_go_without(job: Path, tmp_path: Path, invoke: Invoke) -> None:
    ended(tmp_path / "out", NEW)
    assert "::" not in invoke("report", NEW, "--no-github").stderr
    assert not job.exists()


def test_a_summary_that_cannot_be_written_costs_a_warning(
    job: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "summary"))
    ended(tmp_path / "out", NEW)
    done = invoke("report", NEW)
    assert done.exit_code == 0
    assert "warning: GITHUB_STEP_SUMMARY=" in " ".join(done.stderr.split())


def test_files_are_those_of_the_repository_only() -> None:
    points = [
        case("attention_flash"),
        case("attention_tiled_sgemm"),
        case("no_such_kernel"),
        case("../scripts"),
    ]
    run = results(trials=[passing(p, "local-1") for p in points], points=points)
    model = build_report(run, None, TODAY)
    found = kernel_files(model, REPOSITORY)
    assert set(found) == {"attention_flash", "attention_tiled_sgemm"}
    assert all((REPOSITORY / path).is_file() and path.startswith("kernels/") for path in found.values())
    assert kernel_files(model, BUILT_IN_KERNELS / "scale") == {}
