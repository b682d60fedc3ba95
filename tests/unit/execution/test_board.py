"""What people see of runs, and how they end one that waits."""

from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.domain.names import live_key, state_key
from orchestrator.domain.run_state import RunState
from orchestrator.domain.submission import Submission
from orchestrator.execution.board import Board
from orchestrator.execution.private_redis import private_redis
from tests.unit.execution.redis_fixture import raw_client

RUN_ID = "20261201T010203Z-smoke-aaaa"
AT = "2026-12-01T01:02:03+00:00"
ONE = Submission(RUN_ID, "smoke", "ann@desk", "ondemand", AT, "desk", "memory://b", "a" * 64)
RUNNING = RunState(RUN_ID, "smoke", "ann@desk", "ondemand", "running", AT, AT, "server")


def test_a_run_is_seen_from_its_submission_to_its_end(board: Board, raw: Any) -> None:
    assert board.submit(ONE)
    assert [(s.run_id, s.phase, s.live) for s in board.runs()] == [(RUN_ID, "submitted", False)]
    board.publish(RUNNING)
    assert [(s.phase, s.live) for s in board.runs()] == [("running", True)]
    raw.delete(live_key(RUN_ID))
    found = board.run(RUN_ID)
    assert found is not None
    assert not found.live
    assert board.run("20261201T010203Z-smoke-bbbb") is None


def test_a_submission_whose_state_has_expired_still_waits(board: Board, raw: Any) -> None:
    board.submit(ONE)
    raw.delete(state_key(RUN_ID))
    raw.hset("tilefarm:submissions", "other", "damaged")
    assert [(s.run_id, s.phase) for s in board.runs()] == [(RUN_ID, "submitted")]
    found = board.run(RUN_ID)
    assert found is not None
    assert found.user == "ann@desk"
    assert board.run("other") is None
    assert board.cancel(RUN_ID, "wrong branch") == "struck off"


def test_a_run_that_was_not_begun_is_struck_off(board: Board) -> None:
    board.submit(ONE)
    assert board.cancel(RUN_ID, "wrong branch") == "struck off"
    assert board.submissions() == {}
    found = board.run(RUN_ID)
    assert found is not None
    assert (found.phase, found.why) == ("cancelled", "wrong branch")
    assert board.cancelled(RUN_ID) == "wrong branch", "for an orchestrator that begins it just now"
    assert board.cancel(RUN_ID, "again") == "ended"


def test_a_run_that_is_carried_out_is_ended_by_its_process(board: Board) -> None:
    board.submit(ONE)
    board.publish(replace(RUNNING, phase="preparing"))
    assert board.cancel(RUN_ID, "wrong branch") == "ending"
    assert board.submissions() == {RUN_ID: ONE}
    assert board.cancelled(RUN_ID) == "wrong branch"
    board.publish(replace(RUNNING, phase="finished", exit_code=3))
    assert board.cancel(RUN_ID, "again") == "ended"
    assert board.cancelled(RUN_ID) == "wrong branch"


def test_nobody_has_heard_of_it(board: Board) -> None:
    assert board.cancel(RUN_ID, "wrong branch") == "unknown"
    assert board.cancelled(RUN_ID) == ""


def test_a_broker_that_went_away_is_named_without_its_password() -> None:
    with private_redis() as url, closing(Board(url)) as board:
        board.url = "redis://:hunter2@farm:6379/0"
        with raw_client(url) as raw:
            raw.shutdown(nosave=True)
        with pytest.raises(BrokerUnavailable, match=r"redis://farm:6379/0") as e:
            board.runs()
    assert "hunter2" not in str(e.value)
