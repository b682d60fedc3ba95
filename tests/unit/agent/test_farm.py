"""What an agent knows of its farm while Redis is away: what it knew last, and never "nobody holds it"."""

import math
from dataclasses import replace

import pytest
import redis

from orchestrator.domain.agent import AgentReport
from orchestrator.domain.device_check import read_registration
from orchestrator.domain.event import Registration
from orchestrator.domain.job import Batch
from orchestrator.domain.lease import Hold
from orchestrator.domain.names import HOLD_KEY_PREFIX, STATE_KEY_PREFIX, agent_key, device_key
from orchestrator.domain.wire import pack
from orchestrator.execution.broker import Broker
from orchestrator.execution.private_redis import private_redis
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import RedisClient, connect
from tests.results_fixture import device
from tests.unit.execution.redis_fixture import client, raw_client, redis_url
from workers import registry
from workers.agent.farm import QUIET_S, RedisFarm

__all__ = ["client", "redis_url"]
HELD = Hold("phone-1", "anna@desk", "new battery", "2026-11-30T12:00:00+00:00", "R58", "shelf")
REPORT = AgentReport("shelf", 7, "2026-11-30T12:00:00+00:00", "adb")
ONCE = Registration(device("phone-once"), "w", "2026-11-30T12:00:00+00:00", 9)
SERVED = Registration(device("phone-2"), "w", "2026-11-30T12:00:00+00:00", 8)


def test_what_waits_for_a_device_is_told_by_its_last_lease(client: RedisClient, redis_url: str) -> None:
    """G3-03: queues as Celery makes them."""
    farm, leases = RedisFarm(client), Leases(client)
    assert farm.waiting("ears-1") == ""
    broker = Broker(redis_url)
    broker.send(Batch("run-ears", "b1", "ears-1", "memory://b"), "nightly")
    broker.close()
    assert farm.waiting("ears-1") == "never"
    assert farm.waiting("ears-2") == ""
    lease = leases.claim("ears-1", "w")
    assert lease is not None
    assert farm.waiting("ears-1") == ""
    leases.end(lease)
    assert farm.waiting("ears-1") == str(lease.token)


def test_a_broker_that_is_away_changes_nothing() -> None:
    with private_redis() as url:
        client = connect(url)
        leases = Leases(client)
        assert leases.hold(HELD)
        assert leases.claim("phone-2", "w") is not None
        client.set(device_key("phone-2"), pack(SERVED), ex=100)
        client.set(device_key("phone-3"), "of another version", ex=100)
        farm = RedisFarm(client)

        def known() -> object:
            return farm.holds(), farm.registrations(), farm.busy("phone-1"), farm.busy("phone-2")

        before = known()
        assert before == ([HELD], [SERVED], False, True)
        farm.publish(REPORT)
        assert client.get(agent_key("shelf")) == pack(REPORT).encode()
    assert known() == before
    assert list(farm.news("phone-2")) == []
    farm.publish(REPORT)
    client.close()


def test_how_long_nothing_was_heard_is_counted_from_the_older_of_holds_and_report() -> None:
    now = 100.0
    with private_redis() as url:
        client = connect(url)
        farm = RedisFarm(client, clock=lambda: now)
        assert farm.unheard_s() == math.inf
        assert farm.holds() == []
        assert farm.unheard_s() == math.inf, "nobody can know of this agent"
        farm.publish(REPORT)
        now += 3
        farm.publish(REPORT)
        assert farm.unheard_s() == 3
        farm.holds()
        now += 1
        assert farm.unheard_s() == 1
        farm.busy("phone-1")
        assert farm.unheard_s() == 1
    now += 1
    farm.holds()
    farm.publish(REPORT)
    now += QUIET_S - 1
    farm.holds()
    assert farm.unheard_s() == QUIET_S + 1
    client.close()


def test_a_link_that_hangs_is_asked_once_and_not_for_each_phone(
    client: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    now = 100.0

    def hangs(name: str) -> int:
        asked.append(name)
        raise redis.TimeoutError("Timeout reading from socket")

    monkeypatch.setattr(client, "exists", hangs)
    farm = RedisFarm(client, clock=lambda: now)
    assert not any(farm.busy(f"phone-{n}") for n in range(40))
    assert len(asked) == 1
    now += QUIET_S
    farm.busy("phone-1")
    assert len(asked) == 2


def test_names_that_are_no_text_keep_nobody_from_the_others(client: RedisClient, redis_url: str) -> None:
    hold = Hold("phone-4", "anna@desk", "new battery", "2026-11-30T12:00:00+00:00", "R58", "shelf")
    names = [HOLD_KEY_PREFIX.encode() + b"\xff", STATE_KEY_PREFIX.encode() + b"\xff"]
    broker = Broker(redis_url)
    with raw_client(redis_url) as raw:
        try:
            raw.mset(dict.fromkeys(names, "garbage"))
            Leases(client).hold(hold)
            assert hold in RedisFarm(client).holds()
            assert "\N{REPLACEMENT CHARACTER}" not in {state.run_id for state in broker.runs()}
        finally:
            raw.delete(*names)
            broker.close()


def test_a_registration_is_decoded_once_however_often_it_is_asked_for(
    client: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty agents ask twice a second for those of two hundred phones."""
    decoded: list[str] = []

    def counted(text: object, where: str) -> Registration:
        decoded.append(where)
        return read_registration(text, where)

    monkeypatch.setattr(registry, "read_registration", counted)
    farm, key = RedisFarm(client), device_key("phone-once")
    client.set(key, pack(ONCE), ex=100)
    for _ in range(3):
        assert ONCE in farm.registrations()
    assert decoded.count(key) == 1
    other = replace(ONCE, worker_id="another")
    client.set(key, pack(other), ex=100)
    assert other in farm.registrations()
    assert ONCE not in farm.registrations()
    client.delete(key)
    assert other not in farm.registrations()
    assert decoded.count(key) == 2
