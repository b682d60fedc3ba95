"""Celery beat against a real Redis: what it sends, and that nothing stops it but the end."""

import json
import time
from datetime import timedelta
from typing import Any

import pytest
import redis
from celery.beat import Scheduler

from orchestrator.domain.names import NIGHTS_TASK, ORCHESTRATOR_QUEUE
from orchestrator.execution.beat import beat, count_anew, make_scheduler
from tests.unit.execution.redis_fixture import raw_client

QUEUE = "tilefarm:celery:" + ORCHESTRATOR_QUEUE


class Enough(Exception):
    """So many ticks and no more."""


def run(scheduler: Scheduler, ticks: int, alive: list[float], fails: bool = False) -> None:
    left = [ticks]

    def sleep(_seconds: float) -> None:
        left[0] -= 1
        if not left[0]:
            raise Enough

    def say() -> None:
        alive.append(time.monotonic())
        if fails:
            raise redis.ConnectionError("Connection refused")

    with pytest.raises(Enough):
        beat(scheduler, say, sleep)


def due_now(scheduler: Scheduler) -> None:
    """As after its interval."""
    (entry,) = scheduler.schedule.values()
    entry.last_run_at = entry.default_now() - timedelta(days=1)


@pytest.mark.parametrize("fails", [False, True])
def test_one_message_an_interval_that_expires_before_the_next(redis_url: str, *, fails: bool) -> None:
    """Also while it cannot say that it lives. No other task is sent, such as Celery's own clean-up."""
    scheduler = make_scheduler(redis_url, 300)
    assert list(scheduler.schedule) == ["nights"]
    due_now(scheduler)
    alive: list[float] = []
    with raw_client(redis_url) as raw:
        raw.delete(QUEUE)
        run(scheduler, 4, alive, fails)
        messages: list[dict[str, Any]] = [json.loads(m) for m in raw.lrange(QUEUE, 0, -1)]
        raw.delete(QUEUE)
    assert [m["headers"]["task"] for m in messages] == [NIGHTS_TASK]
    assert messages[0]["headers"]["expires"] is not None
    assert messages[0]["content-type"] == "application/json"
    assert len(alive) == 4


def test_a_clock_that_was_set_back_does_not_silence_it(redis_url: str) -> None:
    scheduler = make_scheduler(redis_url, 300)
    (entry,) = scheduler.schedule.values()
    entry.last_run_at = entry.default_now() + timedelta(days=365)  # by a clock that was ahead
    assert entry.is_due()[1] > 86_400
    count_anew(scheduler)
    assert entry.is_due()[1] <= 300
    assert scheduler.tick() <= 300
    scheduler.close()
