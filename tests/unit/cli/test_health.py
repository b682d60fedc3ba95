"""`tilefarm health`: what a container's health check and an alert ask."""

import json
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.agent import AgentReport
from orchestrator.domain.errors import BrokerUnavailable, InfraError, UsageError
from orchestrator.domain.names import agent_key
from orchestrator.domain.submission import Service
from orchestrator.domain.wire import pack
from orchestrator.storage.broker_health import BrokerHealth
from orchestrator.storage.submissions import Submissions
from tests.unit.cli.conftest import Invoke
from tests.unit.execution.redis_fixture import raw_client, redis_url
from workers.discovery import host_name

__all__ = ["redis_url"]
WELL = BrokerHealth(100 << 20, 512 << 20, "noeviction", append_only=True, write_ok=True)
SINCE = "2026-12-01T01:00:00+00:00"


@pytest.fixture
def farm_redis(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Generator[Any]:
    monkeypatch.setenv("TILEFARM_BROKER", redis_url)
    with raw_client(redis_url) as client:
        yield client


@pytest.mark.parametrize("part", ["orchestrator", "beat"])
def test_a_service_lives_while_its_key_is_there(part: str, invoke: Invoke, farm_redis: Any) -> None:
    services = Submissions(farm_redis)
    gone = invoke("health", part)
    assert isinstance(gone.exception, InfraError)
    assert f"no {part} lives on {host_name()}" in str(gone.exception)
    service = Service(part, host_name(), 4711, SINCE)
    services.serves(service)
    try:
        assert "process 4711" in invoke("health", part).stderr
        assert json.loads(invoke("health", part, "--json").stdout)["pid"] == 4711
        elsewhere = invoke("health", part, "--host", "shelf-9")
        assert "no" in str(elsewhere.exception), "another host's is not this one's"
    finally:
        services.serves_no_more(service)


def test_an_agent_of_another_host_can_be_asked_about(invoke: Invoke, farm_redis: Any) -> None:
    key = agent_key("health-shelf")
    assert isinstance(invoke("health", "agent", "--host", "health-shelf").exception, InfraError)
    farm_redis.set(key, pack(AgentReport("health-shelf", 12, SINCE, "adb")), ex=60)
    try:
        assert (
            "agent on health-shelf: process 12" in invoke("health", "agent", "--host", "health-shelf").stderr
        )
    finally:
        farm_redis.delete(key)


def test_g3_08_a_redis_that_would_lose_work_is_named(invoke: Invoke, farm_redis: Any) -> None:
    """G3-08: noeviction, room and an append-only file are checked by one command, fit for an alert."""
    before = {name: farm_redis.config_get(name)[name] for name in ("maxmemory", "maxmemory-policy")}
    try:
        farm_redis.config_set("maxmemory-policy", "allkeys-lru")
        lost = str(invoke("health", "broker").exception)
        assert "set noeviction" in lost
        assert "set appendonly yes" in lost
        assert "no maxmemory" in lost
        farm_redis.config_set("maxmemory-policy", "noeviction")
        farm_redis.config_set("maxmemory", 512 << 20)
        farm_redis.config_set("appendonly", "yes")
        assert "of 512 MiB in use" in invoke("health", "broker").stderr
        assert json.loads(invoke("health", "broker", "--json").stdout)["policy"] == "noeviction"
    finally:
        farm_redis.config_set("appendonly", "no")
        for name, value in before.items():
            farm_redis.config_set(name, value)


def test_each_trouble_of_a_broker_is_told() -> None:
    assert WELL.troubles() == []
    assert replace(WELL, used_bytes=400 << 20).troubles() == []
    assert "420 of 512 MiB" in replace(WELL, used_bytes=420 << 20).troubles()[0]
    assert "is its disk full" in replace(WELL, write_ok=False).troubles()[0]
    assert len(replace(WELL, max_bytes=0, policy="volatile-lru", append_only=False).troubles()) == 3


def test_no_broker_is_named_and_one_that_is_away_is_exit_code_3(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(invoke("health", "beat").exception, UsageError)
    monkeypatch.setenv("TILEFARM_BROKER", "redis://127.0.0.1:1/0")
    away = invoke("health", "beat").exception
    assert isinstance(away, BrokerUnavailable)
    assert away.exit_code == 3
