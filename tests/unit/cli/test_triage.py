"""``tilefarm triage`` on a small farm whose tenth night found a slower case."""

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from orchestrator.domain.errors import UsageError
from orchestrator.domain.wire import to_json
from orchestrator.execution.run_folder import RunFolder
from orchestrator.history.history import History
from orchestrator.triage.folder import TriageError, TriageFolder, by_finding
from tests.unit.cli.conftest import Invoke
from tests.unit.verdicts.small_farm import SLOW, SmallFarm, run_id

NIGHT = run_id(10)
TODAY = datetime.now(UTC).date()


def slower(night: int, _phone: str, case_id: str) -> float:
    return 0.08 if case_id == SLOW and night == 10 else 0.0


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """OUT with ten nights, the last one judged."""
    out = tmp_path_factory.mktemp("judged") / "out"
    history = History(f"sqlite:///{out}/tilefarm.db", out / "history")
    farm = SmallFarm(history, slower)
    farm.nights(1, 9)
    results = farm.results(10)
    folder = RunFolder(out / "runs" / NIGHT)
    folder.path.mkdir(parents=True)
    folder.results_json.write_text(to_json(results))
    (folder.path / "findings.json").write_text(to_json(farm.night(10)))
    history.close()
    return out


@pytest.fixture
def triage(judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> Invoke:
    shutil.copytree(judged, tmp_path / "out")
    monkeypatch.setenv("TILEFARM_TRIAGE", str(tmp_path / "triage"))
    monkeypatch.setenv("TILEFARM_USER", "me@here")
    monkeypatch.delenv("TILEFARM_DATABASE", raising=False)

    def call(*words: str) -> Result:
        return invoke("triage", *words)

    return call


def document(done: Result) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def the_one(triage: Invoke) -> str:
    (found,) = document(triage("--json"))["findings"]
    return found["finding_id"]


def decisions(tmp_path: Path) -> dict[str, str]:
    loaded = TriageFolder(tmp_path / "triage", "nightly").load()
    return {i: d.state for i, (d, _) in by_finding(loaded).items()}


def renewed(invoke: Invoke, tmp_path: Path) -> Any:
    """findings.json, judged again with what the files say."""
    invoke("report", NIGHT)
    return json.loads((tmp_path / "out" / "runs" / NIGHT / "findings.json").read_text())


def test_the_list_has_ids_places_sizes_and_why(triage: Invoke) -> None:
    found = document(triage("--json"))
    assert (found["run_id"], found["suite"]) == (NIGHT, "nightly")
    (entry,) = found["findings"]
    assert (entry["alarm"], entry["soc"], entry["what"]) == ("new", "SM8650", "regressed")
    assert entry["case"].startswith("attention_flash")
    assert [g["findings"] for g in found["groups"]] == [[entry["finding_id"]]]
    shown = triage().stdout
    for word in (entry["finding_id"], found["groups"][0]["group_id"], "slower", "since 2026-12-10; new"):
        assert word in shown
    assert shown.rstrip().endswith(f"1 open, 0 decided or expected; run {NIGHT}")


def test_acknowledging_a_group_keeps_all_of_it_quiet_and_writes_what_a_reviewer_needs(
    triage: Invoke, tmp_path: Path
) -> None:
    group = document(triage("--json"))["groups"][0]
    until = (TODAY + timedelta(days=5)).isoformat()
    words = [
        "--owner",
        "ana",
        "--note",
        "asked the vendor",
        "--link",
        "https://example.org/7",
        "--expires",
        until,
    ]
    done = document(triage("acknowledge", group["group_id"], *words, "--json"))
    (path,) = done["files"]
    text = Path(path).read_text()
    assert Path(path).parent == tmp_path / "triage" / "nightly"
    for word in (
        "ana",
        "asked the vendor",
        "https://example.org/7",
        until,
        NIGHT,
        "SM8650",
        "% slower",
        "attention",
    ):
        assert word in text
    assert document(triage("--json"))["findings"] == []
    assert "0 open, 1 decided or expected" in triage().stdout
    assert f"acknowledged by ana until {until}: asked the vendor" in triage("--all").stdout


@pytest.mark.parametrize(
    ("word", "state"), [("acknowledge", "acknowledged"), ("noise", "noise"), ("fixed", "fixed")]
)
def test_a_report_that_is_made_again_has_the_decision(
    triage: Invoke, invoke: Invoke, tmp_path: Path, word: str, state: str
) -> None:
    assert triage(word, the_one(triage)).exit_code == 0
    told = renewed(invoke, tmp_path)
    (found,) = told["findings"]
    assert (found["triage"]["state"], found["triage"]["owner"]) == (state, "me@here")
    assert told["counts"][state] == 1
    expires = (TODAY + timedelta(days=30)).isoformat() if state != "fixed" else ""
    assert found["triage"]["expires"] == expires, "nobody said until when"


def test_accepting_restarts_the_baseline_and_reopening_brings_the_finding_back(
    triage: Invoke, invoke: Invoke, tmp_path: Path
) -> None:
    finding = the_one(triage)
    assert triage("accept", finding, "--note", "the price of rounding").exit_code == 0
    assert renewed(invoke, tmp_path)["findings"] == []
    assert triage("reopen", finding[:6], "--note", "no").exit_code == 0, "found by its decision's beginning"
    (back,) = renewed(invoke, tmp_path)["findings"]
    assert back["finding_id"] == finding
    assert back["triage"]["state"] == "new"
    assert the_one(triage) == finding


def test_a_later_word_takes_the_place_of_an_earlier_one(triage: Invoke, tmp_path: Path) -> None:
    finding = the_one(triage)
    for word in ("noise", "acknowledge", "fixed"):
        assert triage(word, finding).exit_code == 0
    assert decisions(tmp_path) == {finding: "fixed"}
    assert len(list((tmp_path / "triage" / "nightly").iterdir())) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["noise", "feedfeedfeedfeed"], '"feedfeedfeedfeed" is no finding and no group of run'),
        (["noise", "abc"], '"abc" is no finding and no group'),
        (["noise", "ID", "--expires", "2020-01-01"], "--expires 2020-01-01: has passed"),
        (["noise", "ID", "--expires", "soon"], "--expires soon: a date such as"),
        (["--run", "2026", "--all"], "neither in"),
        (["--all", "noise", "ID"], "give options after the word: `tilefarm triage noise"),
        (["check", "/nowhere/at/all"], "no folder of decisions"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_writes_nothing(
    triage: Invoke, tmp_path: Path, words: Sequence[str], message: str
) -> None:
    finding = the_one(triage)
    done = triage(*(finding if word == "ID" else word for word in words))
    assert isinstance(done.exception, UsageError)
    assert message in str(done.exception)
    assert not (tmp_path / "triage").exists()


def test_a_run_without_findings_says_why(triage: Invoke, tmp_path: Path) -> None:
    (tmp_path / "out" / "runs" / NIGHT / "findings.json").unlink()
    assert "no run has findings yet" in str(triage().exception)
    assert "has no findings: it is a part of a suite" in str(triage("--run", NIGHT).exception)


def test_a_file_that_is_not_in_order_stops_triage_with_its_line_and_costs_no_verdict(
    triage: Invoke, invoke: Invoke, tmp_path: Path
) -> None:
    finding = the_one(triage)
    triage("noise", finding)
    assert triage("check", str(tmp_path / "triage")).exit_code == 0
    (path,) = (tmp_path / "triage" / "nightly").iterdir()
    path.write_text(path.read_text().replace("owner: ", "owner: [") + "\n<<<<<<< HEAD\n")
    for words in ([], ["fixed", finding], ["check", str(tmp_path / "triage")]):
        done = triage(*words)
        assert isinstance(done.exception, TriageError)
        assert done.exception.exit_code == 2
        assert f"{path}:" in str(done.exception)
    told = renewed(invoke, tmp_path)
    assert [f["triage"] for f in told["findings"]] == [None]
    assert told["not_measured"][0].startswith(f"triage: {path}:")


def test_text_of_strangers_is_printed_visibly(triage: Invoke) -> None:
    assert triage("noise", the_one(triage), "--note", "red\x1b[31m\u202eevil").exit_code == 0
    shown = triage("--all").stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "evil" in shown
