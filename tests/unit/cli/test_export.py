"""`tilefarm export` on a history that is on disk."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.domain.tuning import Tuning
from orchestrator.domain.wire import adapter, from_json, to_json
from orchestrator.history.history import History
from tests.unit.cli.conftest import Invoke
from tests.unit.verdicts.test_best import FAST, MIDDLE, SLOW, night, run_id

NEWEST = run_id(3)


@pytest.fixture
def out(tmp_path: Path, invoke: Invoke) -> Path:
    """Three nights; the newest one's results are there, too."""
    del invoke  # sets TILEFARM_OUT
    folder = tmp_path / "out"
    history = History(f"sqlite:///{folder}/tilefarm.db", folder / "history")
    for number in (1, 2, 3):
        found = night(number)
        history.store(found)
    history.close()
    run = folder / "runs" / NEWEST
    run.mkdir(parents=True)
    (run / "results.json").write_text(to_json(found))
    return folder


def table(text: str) -> Mapping[str, Any]:
    return json.loads(text)


def test_json_is_the_documented_table(out: Path, invoke: Invoke) -> None:
    del out
    done = invoke("export")
    assert done.exit_code == 0, done.output
    found = from_json(Tuning, done.stdout, "stdout")
    assert (found.run_id, found.suite, found.format) == (NEWEST, "nightly", 1)
    entry = found.entries[0]
    assert (entry.match, entry.soc, entry.api, entry.op) == ("soc", "SM8650", "any", "attention")
    assert entry.variant.case_id == FAST.case_id
    assert entry.workload_key == "causal=false head_dim=64 heads=1 kv_heads=1 seq=512"
    assert entry.margin is not None
    assert entry.margin.to == MIDDLE.case_id
    assert entry.latency_ns is not None
    assert entry.near_share == 1.0
    assert "rests on 3 nights, and 7 are needed" in entry.warnings
    assert [e.api for e in found.entries] == ["any", "gles"], "no fallback out of one SoC"
    assert adapter(Tuning).validate_json(done.stdout) == found


@pytest.mark.parametrize("words", [(NEWEST,), ("--suite", "nightly"), ("--soc", "SM8650"), ("-o", "x.json")])
def test_one_history_gives_the_same_bytes(
    out: Path, invoke: Invoke, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del out
    monkeypatch.chdir(tmp_path)
    first, again = invoke("export", *words), invoke("export", *words)
    assert first.exit_code == again.exit_code == 0
    assert first.stdout == again.stdout
    if words[0] == "-o":
        assert (tmp_path / "x.json").read_text() == invoke("export").stdout


def test_its_own_command_makes_it_again(out: Path, invoke: Invoke) -> None:
    del out
    done = invoke(
        "export", "--precision", "fp32", "--max-nmse", "1.25e-6", "--soc", "SM8650", "--format", "c"
    )
    assert done.exit_code == 0, done.output
    command = next(line for line in done.stdout.splitlines() if line.startswith(" * $ "))
    again = invoke(*command.split()[3:])
    assert again.stdout == done.stdout
    assert "Chosen from: precision fp32; NMSE at most 1.25e-06" in done.stdout.replace("\n *  ", "")


def test_an_older_run_is_looked_at_as_of_then(out: Path, invoke: Invoke) -> None:
    del out
    found = table(invoke("export", run_id(2)).stdout)
    assert found["runs"] == [run_id(1), run_id(2)]
    assert any("results.json of the newest run is gone" in w for w in found["entries"][0]["warnings"])


def test_only_what_was_asked_for(out: Path, invoke: Invoke) -> None:
    del out
    found = table(invoke("export", "--precision", "fp16_storage").stdout)
    assert {e["variant"]["case_id"] for e in found["entries"]} == {SLOW.case_id}
    assert found["precisions"] == ["fp16_storage"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--soc", "SM1"), "SoC 'SM1': not in these nights"),
        (("--precision", "fp8"), "there are fp16_storage, fp32"),
        (("--max-nmse", "-1"), "a number of 0 or more"),
        (("--max-nmse", "nan"), "a number of 0 or more"),
        (("--max-nmse", "1e-300"), "no variant is left to choose from: NMSE 1.6e-13 is above"),
        (("--suite", "weekly"), "no whole run of suite 'weekly' is in the history"),
        ((NEWEST, "--suite", "nightly"), "leave one of them out"),
        (("nowhere",), "'nowhere' is neither in"),
        (("-o", "no/such/folder/x.json"), "its folder is not there"),
    ],
)
def test_bad_input_says_what_is_wrong(out: Path, invoke: Invoke, words: tuple[str, ...], said: str) -> None:
    del out
    error = invoke("export", *words).exception
    assert isinstance(error, UsageError)
    assert said in str(error)
    assert error.exit_code == 2


def test_an_empty_history_says_what_to_do(invoke: Invoke) -> None:
    error = invoke("export").exception
    assert isinstance(error, UsageError)
    assert "`tilefarm run` makes one" in str(error)
