"""A night's deadline ends its run once, and never one that has ended before."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.execution import night_deadline
from orchestrator.execution.night_deadline import ends_at

START = datetime(2026, 12, 1, 1, tzinfo=UTC)
WAIT_S = 60.0


def test_a_run_that_ends_in_time_is_not_cancelled() -> None:
    cancelled: list[bool] = []
    with ends_at(START + timedelta(hours=8), lambda: cancelled.append(True) or True, lambda: START):
        pass
    assert cancelled == []


def test_at_the_deadline_it_is_cancelled_until_redis_has_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis is away, then nothing of the run was sent yet, then it is."""
    answers = ["away", "unknown", "done"]
    asked: list[str] = []
    heard = threading.Event()

    def cancel() -> bool:
        answer = answers[len(asked)]
        asked.append(answer)
        if answer == "away":
            raise BrokerUnavailable("Connection refused")
        if answer == "done":
            heard.set()
        return answer == "done"

    monkeypatch.setattr(night_deadline, "AGAIN_S", 0.01)
    with ends_at(START, cancel, lambda: START):
        assert heard.wait(WAIT_S)
    assert asked == answers
