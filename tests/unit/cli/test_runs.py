"""Resume, report and compare on runs that are on disk; no device is needed for any of it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest

from orchestrator.cli import dispatch as cli_dispatch
from orchestrator.cli.dispatch import dispatch
from orchestrator.cli.fleet import Fleet
from orchestrator.cli.resume import resumable
from orchestrator.domain.errors import BrokerUnavailable, UsageError
from orchestrator.domain.gate import Gate
from orchestrator.domain.job import CaseJob
from orchestrator.domain.settings import Settings
from orchestrator.execution.broker import Broker
from orchestrator.execution.run_folder import Manifest, RunFolder, load_results, point_latest
from tests.results_fixture import case, device, results, run_info, timing, trial
from tests.unit.cli.conftest import Invoke

OLD, NEW, CUT = "20261129T010000Z-smoke-aaaa", "20261130T010000Z-smoke-bbbb", "20261130T020000Z-smoke-cccc"
POINT = case()


def started(out: Path, run_id: str, *, median_ns: int | None = None) -> RunFolder:
    """A run on disk: cut off before its only case, or with all trials."""
    planned = results(
        points=[POINT], devices=[device("local-1")], run=run_info(run_id, suite="smoke", finished=False)
    )
    job = CaseJob(POINT.case_id, 1, POINT.label, "gles", "c0de", [], [], [])
    folder = RunFolder.create(out, Manifest(planned, {"local-1": [job]}, "memory://b", "ondemand"))
    if median_ns is not None:
        folder.append([trial(POINT, "local-1", time=timing(median_ns))])
    return folder


def ended(out: Path, run_id: str, median_ns: int = 1_000_000) -> RunFolder:
    folder = started(out, run_id, median_ns=median_ns)
    folder.finish("", "2026-11-30T00:00:00+00:00", {})
    point_latest(out, run_id)
    return folder


def test_latest_to_resume_is_the_newest_that_was_started(tmp_path: Path) -> None:
    ended(tmp_path, OLD)
    cut = started(tmp_path, NEW)
    (tmp_path / "runs" / CUT).mkdir()  # without a manifest nothing was dispatched
    assert resumable(tmp_path, "latest").path == cut.path
    assert resumable(tmp_path, OLD).path.name == OLD


def test_there_may_be_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run was started"):
        resumable(tmp_path, "latest")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--suite", "smoke"),
        ("--matrix", "matrix.yaml"),
        ("--kernels", "k"),
        ("-k", "seq=1"),
        ("--case", "0" * 16),
        ("--device", "local"),
        ("--set", "tile=8x8"),
    ],
)
def test_resume_refuses_what_it_would_ignore(option: str, value: str, invoke: Invoke) -> None:
    done = invoke("run", "--resume", "latest", option, value)
    assert isinstance(done.exception, UsageError)
    assert option in str(done.exception)


def test_with_nothing_left_only_the_report_is_written(tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "out"
    old = ended(out, OLD)
    ended(out, NEW)
    before = old.results_json.read_bytes()
    assert invoke("run", "--resume", OLD).exit_code == 0
    assert (old.path / "index.html").is_file()
    assert old.results_json.read_bytes() == before
    assert (out / "latest").readlink().name == NEW


def test_a_run_cut_off_after_its_last_trial_needs_no_device(tmp_path: Path, invoke: Invoke) -> None:
    folder = started(tmp_path / "out", NEW, median_ns=1000)
    assert invoke("run", "--resume", NEW).exit_code == 0
    assert load_results(folder.path).run.finished_at
    assert (tmp_path / "out" / "latest").readlink().name == NEW


@pytest.mark.parametrize("words", [("report", CUT), ("compare", OLD, CUT)])
def test_a_run_that_was_cut_off_has_no_report(tmp_path: Path, words: tuple[str, ...], invoke: Invoke) -> None:
    ended(tmp_path / "out", OLD)
    started(tmp_path / "out", CUT)
    done = invoke(*words)
    assert isinstance(done.exception, UsageError)
    assert f"`tilefarm run --resume {CUT}`" in str(done.exception)


def test_compare_as_json_has_ratios_and_the_slower(tmp_path: Path, invoke: Invoke) -> None:
    ended(tmp_path / "out", OLD, 1_000_000)
    ended(tmp_path / "out", NEW, 1_500_000)
    done = invoke("compare", OLD, NEW, "--max-slowdown", "1.1", "--json")
    assert done.exit_code == 1, done.exception
    document = json.loads(done.stdout)
    (change,) = document["comparison"]["changes"]
    assert change["ratio"] == pytest.approx(1.5)
    assert change["notable"] is True
    assert change["not_comparable"] == ""
    (slow,) = document["slower"]
    assert (slow["case_id"], slow["ratio"]) == (POINT.case_id, change["ratio"])
    assert json.loads(invoke("compare", OLD, NEW, "--json").stdout)["slower"] == []


def test_compare_writes_a_page_of_what_it_shows(tmp_path: Path, invoke: Invoke) -> None:
    ended(tmp_path / "out", OLD, 1_000_000)
    ended(tmp_path / "out", NEW, 1_500_000)
    page = tmp_path / "compare.html"
    done = invoke("compare", OLD, NEW, "--max-slowdown", "1.1", "--html", str(page))
    assert done.exit_code == 1, done.exception
    assert "50.0 % slower" in done.stdout
    html = page.read_text("utf-8")
    assert "1 case in both runs: 1 above the bound of ×1.10" in html
    assert "50.0 % slower" in html.replace("\u00a0", " ")
    assert OLD in html


def test_a_page_that_cannot_be_written_says_where(tmp_path: Path, invoke: Invoke) -> None:
    ended(tmp_path / "out", OLD)
    ended(tmp_path / "out", NEW)
    done = invoke("compare", OLD, NEW, "--html", str(tmp_path / "nowhere" / "page.html"))
    assert isinstance(done.exception, UsageError)
    assert "nowhere/page.html: No such file or directory. Name a file" in str(done.exception)


class _Gone(Broker):
    """A broker that ended in the middle of a run."""

    def __init__(self) -> None:
        self.url = "redis://:hunter2@farm:6379/0"


def _outlasted(*_: object) -> NoReturn:
    raise BrokerUnavailable("broker: gone") from OSError("Connection closed by server.")


@pytest.mark.parametrize("own", ["", "redis://:hunter2@farm:6379/0"])
def test_a_broker_that_stays_away_names_the_run(
    tmp_path: Path, own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_dispatch, "carry_out", _outlasted)
    folder = started(tmp_path, NEW)
    settings = Settings(out=tmp_path, broker=own)
    fleet = Fleet(_Gone(), [device("local-1")], [])
    planned: Mapping[str, float] = {}
    with pytest.raises(BrokerUnavailable) as e:
        dispatch(folder, fleet, settings, planned, Gate())
    said = str(e.value)
    assert f"`tilefarm run --resume {NEW}`" in said
    assert "server. Results" in said
    assert "hunter2" not in said
    assert ("start Redis again" in said) is bool(own)
