"""Notes about workers that were replaced: bounded, and read by the clock of whoever asks (G3-03)."""

from datetime import UTC, datetime, timedelta
from typing import NoReturn

import pytest
import redis

from orchestrator.domain.degraded import Degraded
from orchestrator.domain.names import DEGRADED_KEPT, RUN_KEYS_TTL_S, degraded_key
from orchestrator.domain.wire import pack
from orchestrator.storage.degraded import degraded_since, note_degraded
from orchestrator.storage.redis_client import RedisClient
from tests.unit.execution.redis_fixture import raw_client, seconds_left
from workers import consumption
from workers.agent.farm import RedisFarm

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
WHY = "its worker took nothing"


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def test_a_run_reads_what_fell_into_its_time(client: RedisClient) -> None:
    before = now()
    note_degraded(client, "deaf-1", WHY)
    (sentence,) = degraded_since(client, ["deaf-0", "deaf-1"], before)
    assert sentence.startswith("deaf-1 at 20")
    assert sentence.endswith(f"+00:00: {WHY}")
    assert degraded_since(client, ["deaf-1"], now() + timedelta(hours=1)) == []
    assert degraded_since(client, ["deaf-0"], LONG_AGO) == []


def test_another_clock_than_that_of_redis_changes_nothing(
    client: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run's times are of the host that carries it out."""
    server = client.time()[0]
    monkeypatch.setattr(client, "time", lambda: (server - 7200, 0))
    note_degraded(client, "deaf-2", WHY)
    started = now() - timedelta(minutes=1)
    assert len(degraded_since(client, ["deaf-2"], started)) == 1
    monkeypatch.undo()
    assert degraded_since(client, ["deaf-2"], started) == [], "the two clocks agree: it was before"


def test_the_newest_are_kept_for_a_while(client: RedisClient, redis_url: str) -> None:
    for number in range(DEGRADED_KEPT + 3):
        note_degraded(client, "deaf-3", f"time {number}.")
    found = degraded_since(client, ["deaf-3"], LONG_AGO)
    assert [s.rpartition(" ")[2] for s in found] == [f"{n}." for n in range(3, DEGRADED_KEPT + 3)]
    assert 0 < seconds_left(redis_url, degraded_key("deaf-3")) <= RUN_KEYS_TTL_S


def test_what_is_no_note_hides_no_other(client: RedisClient, redis_url: str) -> None:
    key = degraded_key("deaf-4")
    with raw_client(redis_url) as raw:
        for text in (b"\xff", "{}", pack(Degraded("tonight", WHY)), pack(Degraded("", "long" * 1000))):
            raw.rpush(key, text)
    note_degraded(client, "deaf-4", WHY)
    assert len(degraded_since(client, ["deaf-4"], LONG_AGO)) == 1


def test_an_agent_and_a_worker_leave_one(client: RedisClient, monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(consumption.os, "_exit", codes.append)
    RedisFarm(client).degraded("deaf-5", WHY)
    consumption.end_stalled(client, "deaf-5")
    first, second = degraded_since(client, ["deaf-5"], LONG_AGO)
    assert (WHY in first, "it ended itself" in second) == (True, True)
    assert codes == [consumption.EXIT_STALLED]


def test_a_worker_ends_and_an_agent_goes_on_without_redis(
    client: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(consumption.os, "_exit", codes.append)
    monkeypatch.setattr(client, "time", away)
    consumption.end_stalled(client, "deaf-6")
    RedisFarm(client).degraded("deaf-6", WHY)
    assert codes == [consumption.EXIT_STALLED]


def away() -> NoReturn:
    raise redis.ConnectionError("away")
