"""One agent a host: of its adb server and, in a farm, of its name."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from orchestrator.domain.agent import AgentReport
from orchestrator.domain.errors import InfraError
from orchestrator.domain.names import AGENT_TTL_S, agent_key
from orchestrator.domain.wire import pack
from orchestrator.storage.redis_client import RedisClient
from tests.unit.execution.redis_fixture import client, redis_url
from workers.agent.serve import only_one
from workers.transports.adb import AdbServer

__all__ = ["client", "redis_url"]
SERVER = AdbServer("127.0.0.1", 1)


@pytest.fixture(autouse=True)
def own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def reported(client: RedisClient, host: str, pid: int) -> None:
    report = AgentReport(host, pid, "2026-11-30T12:00:00+00:00", "")
    client.set(agent_key(host), pack(report), ex=100)


def test_a_second_agent_of_an_adb_server_is_refused_also_with_another_broker(client: RedisClient) -> None:
    with only_one(client, "one-lock", SERVER):
        with (
            pytest.raises(InfraError, match=f"is in use by process {os.getpid()}"),
            only_one(client, "one-lock", SERVER),
        ):
            pass
        with only_one(client, "one-lock", AdbServer("127.0.0.1", 2)):
            pass
    with only_one(client, "one-lock", SERVER):
        pass


def test_another_users_agent_of_this_host_is_seen_by_its_report(client: RedisClient) -> None:
    reported(client, "one-other", os.getppid())
    slept: list[float] = []
    with (
        pytest.raises(InfraError, match=f"has an agent already: process {os.getppid()} since 2026"),
        only_one(client, "one-other", SERVER, slept.append),
    ):
        pass
    assert sum(slept) > AGENT_TTL_S


def test_an_agent_of_another_version_is_one_too(client: RedisClient) -> None:
    client.set(agent_key("one-older"), '{"wire": 0}', ex=100)
    with (
        pytest.raises(InfraError, match=r"has an agent already.*wire version 0.*upgrade the older side"),
        only_one(client, "one-older", SERVER, lambda _: None),
    ):
        pass


def test_the_report_of_a_dead_agent_is_no_agent(client: RedisClient) -> None:
    """Killed -9; in a container its process id may be another's by now, or our own."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    reported(client, "one-dead", dead.pid)
    with only_one(client, "one-dead", SERVER):
        pass
    reported(client, "one-dead", os.getpid())
    slept: list[float] = []

    def ends(seconds: float) -> None:
        slept.append(seconds)
        client.delete(agent_key("one-dead"))

    with only_one(client, "one-dead", SERVER, ends):
        pass
    assert len(slept) == 1
