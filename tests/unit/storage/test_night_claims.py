"""A night in Redis: whoever is first has it."""

import threading
from dataclasses import replace

import pytest

from orchestrator.domain.night import NIGHT_KEY_PREFIX, NightRecord
from orchestrator.storage.night_claims import NightClaims
from orchestrator.storage.redis_client import RedisClient

NIGHT = "2026-12-01-claimed"
OURS = NightRecord(NIGHT, "claimed", "2026-12-01T01:00:00+00:00", "started", "ours", "a")
THEIRS = replace(OURS, keeper="theirs", host="b")


@pytest.fixture
def claims(client: RedisClient) -> NightClaims:
    client.delete(NIGHT_KEY_PREFIX + NIGHT)
    return NightClaims(client)


def test_the_second_claim_learns_of_the_first(claims: NightClaims) -> None:
    assert claims.claim(OURS) == OURS
    assert claims.claim(THEIRS) == OURS
    assert claims.claim(replace(THEIRS, state="missed")) == OURS
    assert claims.claim(OURS) == OURS  # again, after a crash
    assert claims.all()[NIGHT] == OURS


def test_a_night_that_was_told_as_missed_can_be_started_by_one(claims: NightClaims) -> None:
    assert claims.claim(replace(OURS, state="missed")).state == "missed"
    assert claims.claim(replace(THEIRS, state="missed")).keeper == "ours"
    assert claims.claim(THEIRS) == THEIRS
    assert claims.claim(OURS) == THEIRS


@pytest.mark.parametrize("told", [False, True])
def test_of_many_at_once_one_gets_it(claims: NightClaims, client: RedisClient, *, told: bool) -> None:
    if told:
        claims.claim(replace(OURS, state="missed"))
    together = threading.Barrier(16)
    got: list[str] = []

    def claim(keeper: str) -> None:
        together.wait()
        got.append(NightClaims(client).claim(replace(OURS, keeper=keeper)).keeper)

    threads = [threading.Thread(target=claim, args=[f"k{n}"]) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 16
    assert len(set(got)) == 1
