"""`tilefarm status` and `tilefarm watch` on what others have said of their runs."""

import json
import threading
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli import watch as cli_watch
from orchestrator.cli.live import LiveProgress
from orchestrator.cli.status import SHOWN_ENDED, next_step
from orchestrator.domain.errors import UsageError
from orchestrator.domain.event import Progress
from orchestrator.domain.names import events_key, live_key, soc_slug
from orchestrator.domain.run_state import RunState, Target
from orchestrator.domain.submission import Service, Submission
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.domain.wire import pack
from orchestrator.execution.board import Board
from orchestrator.execution.run_folder import RunFolder
from tests.results_fixture import case, trial
from tests.unit.cli.conftest import Invoke
from tests.unit.cli.test_runs import CUT, NEW, OLD, ended, started

RUN_ID = "20261201T010203Z-smoke-aaaa"
AT = "2026-12-01T01:02:03+00:00"
ONE = Submission(RUN_ID, "smoke", "ann@desk", "ondemand", AT, "desk", "memory://b", "a" * 64)
TARGETS = [
    Target("pixel", "SM8650", "Pixel 10", 8, done=2, lost=1, left_s=90.0, devices=["pixel"]),
    Target("", "SM8450", "any of 2 SM8450", 4, waiting_since=AT, why="both too hot", devices=["a", "b"]),
]
RUNNING = RunState(RUN_ID, "smoke", "ann@desk", "ondemand", "running", AT, AT, "server", TARGETS)


@pytest.fixture
def raw(raw: Any, url: str, monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> Any:
    """After ``invoke``, whose settings have no broker."""
    del invoke
    monkeypatch.setenv("TILEFARM_BROKER", url)
    return raw


def test_all_runs_of_the_farm_with_who_and_how_far(board: Board, invoke: Invoke) -> None:
    board.publish(RUNNING)
    board.submit(replace(ONE, run_id="20261201T020203Z-smoke-bbbb", submitted_at="2026-12-01T02:02:03+00:00"))
    done = invoke("status")
    assert done.exit_code == 0, done.exception
    running, waiting = done.stdout.splitlines()[1:]
    for word in (RUN_ID, "running", "ann@desk", "ondemand", "2/12", "90 s"):
        assert word in running
    assert "submitted" in waiting
    assert "none lives: start `tilefarm orchestrator`" in done.stderr
    board.serves(Service("orchestrator", "server", 1, AT))
    assert "none lives" not in invoke("status").stderr
    document = json.loads(invoke("status", "--json").stdout)
    assert [run["phase"] for run in document["runs"]] == ["running", "submitted"]
    assert document["orchestrators"] == ["server"]


def test_one_run_with_its_devices(board: Board, invoke: Invoke) -> None:
    board.publish(RUNNING)
    done = invoke("status", RUN_ID)
    assert "Pixel 10 (SM8650)" in done.stdout
    assert "both too hot" in done.stdout
    assert isinstance(invoke("status", NEW).exception, UsageError)


def test_a_run_that_nobody_carries_out_is_told_with_what_helps(
    board: Board, raw: Any, invoke: Invoke
) -> None:
    board.publish(RUNNING)
    raw.delete(live_key(RUN_ID))
    done = invoke("status")
    assert "cut off" in done.stdout
    assert f"`tilefarm run --resume {RUN_ID}`" in done.stderr
    assert "it was on server" in done.stderr


def test_of_runs_that_have_ended_the_last_are_shown(board: Board, invoke: Invoke) -> None:
    for number in range(SHOWN_ENDED + 3):
        at = f"2026-12-01T01:{number:02d}:00+00:00"
        run_id = f"20261201T01{number:02d}00Z-smoke-aaaa"
        board.publish(replace(RUNNING, run_id=run_id, phase="finished", started_at=at, updated_at=at))
    assert len(json.loads(invoke("status", "--json").stdout)["runs"]) == SHOWN_ENDED
    assert len(json.loads(invoke("status", "--all", "--json").stdout)["runs"]) == SHOWN_ENDED + 3


def test_words_of_others_are_shown_literally(board: Board, invoke: Invoke) -> None:
    board.publish(replace(RUNNING, user="\x1b[2J[bold]ann", started_at="not a time", why="[/]"))
    shown = invoke("status").stdout
    assert "\\u001b[2J[bold]ann" in shown
    assert "not a time" in shown


def test_a_time_without_a_zone_is_utc(board: Board, invoke: Invoke) -> None:
    then = datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=1)
    board.publish(replace(RUNNING, started_at=then.isoformat()))
    assert "60 min ago" in invoke("status").stdout


def test_without_a_farm_the_runs_of_this_machine(tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "out"
    ended(out, OLD)
    started(out, CUT)
    lacking = started(out, NEW)
    lacking.finish("", AT, {})
    (out / "runs" / "20261130T000000Z-smoke-eeee").mkdir()
    documents = json.loads(invoke("status", "--json").stdout)["runs"]
    assert [(run["run_id"], run["state"]) for run in documents] == [
        (OLD, "finished"),
        (NEW, "incomplete"),
        (CUT, "cut off"),
    ]
    shown = invoke("status", CUT).stdout
    assert f"tilefarm run --resume {CUT}" in shown
    with RunFolder(out / "runs" / CUT).only_one():
        assert "running" in invoke("status", CUT).stdout


@pytest.mark.parametrize("exit_code", [0, 1, 3, None])
def test_watch_ends_with_the_exit_code_of_the_run(
    board: Board, invoke: Invoke, exit_code: int | None
) -> None:
    board.publish(
        replace(
            RUNNING,
            phase="finished" if exit_code is not None else "failed",
            verdict="2 kernels are wrong",
            exit_code=exit_code,
            report="/out/runs/index.html",
        )
    )
    done = invoke("watch", RUN_ID)
    assert done.exit_code == (3 if exit_code is None else exit_code), done.exception
    assert "2 kernels are wrong" in done.stdout
    assert "report: /out/runs/index.html on server" in done.stdout
    assert json.loads(invoke("watch", RUN_ID, "--json").stdout)["exit_code"] == exit_code
    assert isinstance(invoke("watch", NEW).exception, UsageError)


def test_watch_follows_a_run_over_all_its_phases(
    board: Board, raw: Any, invoke: Invoke, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events of a pool are those of its SoC; what infrastructure kept from us is no result yet."""
    pool = f"pool0-{soc_slug('SM8450')}"
    _tell(raw, Progress("pixel", "batch"))
    for number, verdict in enumerate((Verdict.PASS, Verdict.MISMATCH, Verdict.INFRA)):
        _tell(raw, replace(trial(case(), "pixel", verdict), run_id=RUN_ID, case_id=f"{number:016d}"))
    _tell(raw, replace(trial(case(), "a"), run_id=RUN_ID, planned_for=pool))
    raw.xadd(events_key(RUN_ID), {"trial": "damaged"})
    board.submit(ONE)
    seen = threading.Event()

    class Noticed(LiveProgress):
        def trial(self, trial: Trial) -> None:
            super().trial(trial)
            if trial.device_id == "a":  # the last of them
                seen.set()

    monkeypatch.setattr(cli_watch, "LiveProgress", Noticed)

    def others() -> None:
        with closing(Board(url)) as there:
            there.publish(RUNNING)
            seen.wait(60)
            there.publish(replace(RUNNING, phase="finished", verdict="1 kernel is wrong", exit_code=1))

    thread = threading.Thread(target=others)
    thread.start()
    done = invoke("watch", RUN_ID)
    thread.join()
    assert done.exit_code == 1, done.exception
    assert "Pixel 10: 2/8  1 pass, 1 mismatch" in done.stderr
    assert "any of 2 SM8450: 1/4  1 pass" in done.stderr
    assert "1 kernel is wrong" in done.stdout


def _tell(raw: Any, event: Trial | Progress) -> None:
    """As a worker does (``workers/results.py``)."""
    if isinstance(event, Trial):
        fields = {"trial": pack(event), "device": event.device_id, "key": event.key}
    else:
        fields = {"progress": pack(event)}
    raw.xadd(events_key(RUN_ID), fields)


def test_what_keeps_a_run_from_going_on() -> None:
    waiting = replace(RUNNING, phase="submitted")
    assert next_step(replace(RUNNING, live=True), [], []) == ""
    assert next_step(waiting, ["server"], [RUN_ID]) == ""
    assert "start `tilefarm orchestrator`" in next_step(waiting, [], [RUN_ID])
    assert "--resume" in next_step(RUNNING, ["server"], [])
    assert "goes on by itself" in next_step(RUNNING, ["server"], [RUN_ID])
    assert "start `tilefarm orchestrator`" in next_step(RUNNING, [], [RUN_ID])
    assert next_step(replace(RUNNING, phase="failed"), [], []) == ""
