"""`--artifacts`: a copy of the report, and nothing of anybody else's is touched."""

from pathlib import Path

import pytest

from orchestrator.cli import new_run
from orchestrator.domain.errors import UsageError
from tests.unit.cli.conftest import Invoke
from tests.unit.cli.test_runs import NEW, OLD, ended


def names(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*")}


def test_the_copy_is_the_report_and_only_that(tmp_path: Path, invoke: Invoke) -> None:
    run = ended(tmp_path / "out", NEW)
    assert invoke("report", NEW, "--artifacts", str(tmp_path / "a" / "report")).exit_code == 0
    found = names(tmp_path / "a" / "report")
    wanted = {"index.html", "soc-llvmpipe.html", "results.json", "junit.xml", "summary.md", "metrics.prom"}
    assert wanted <= found
    assert found < names(run.path)
    assert not {"manifest.json", "trials.jsonl"} & found


def test_an_earlier_copy_is_replaced_as_a_whole(tmp_path: Path, invoke: Invoke) -> None:
    for run_id in (OLD, NEW):
        ended(tmp_path / "out", run_id)
    copy = tmp_path / "report"
    invoke("report", OLD, "--artifacts", str(copy))
    (copy / "soc-gone.html").touch()
    invoke("report", NEW, "--artifacts", str(copy))
    assert not (copy / "soc-gone.html").exists()
    assert NEW in (copy / "results.json").read_text()


@pytest.mark.parametrize("command", [("report", NEW), ("run",)])
def test_a_folder_of_somebody_else_is_refused_before_anything_is_measured(
    command: tuple[str, ...], tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_: object) -> None:
        raise AssertionError("a device was opened")

    monkeypatch.setattr(new_run, "open_fleet", opened)
    ended(tmp_path / "out", NEW)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    done = invoke(*command, "--artifacts", str(tmp_path / "mine"))
    assert isinstance(done.exception, UsageError)
    assert "no copy of a report" in str(done.exception)
    assert names(tmp_path / "mine") == {"thesis.tex"}


def test_an_empty_folder_is_fine(tmp_path: Path, invoke: Invoke) -> None:
    ended(tmp_path / "out", NEW)
    (tmp_path / "new").mkdir()
    assert invoke("report", NEW, "--artifacts", str(tmp_path / "new")).exit_code == 0
    assert (tmp_path / "new" / "index.html").is_file()
