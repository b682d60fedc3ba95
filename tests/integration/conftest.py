"""A farm in a temporary folder, and a broker of our own."""

import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.execution.private_redis import redis_server_program
from orchestrator.storage.redis_client import connect
from tests.farm import Farm, wait_for
from tests.phones import adb_server, free_port, start_phone

__all__ = ["adb_server", "start_phone"]


@pytest.fixture
def farm(tmp_path: Path) -> Farm:
    return Farm(tmp_path)


@pytest.fixture
def broker(tmp_path: Path) -> Generator[str]:
    """A real redis-server on a free port, as a farm has one."""
    port = free_port()
    folder = tmp_path / "redis"
    folder.mkdir()
    with (folder / "redis.log").open("wb") as log:
        server = subprocess.Popen(
            [redis_server_program(), "--port", str(port), "--save", "", "--dir", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    url = f"redis://127.0.0.1:{port}/0"
    try:
        wait_for(lambda: _answers(url), "redis-server")
        yield url
    finally:
        server.terminate()
        server.wait(20)


def _answers(url: str) -> bool:
    try:
        connect(url).close()
    except BrokerUnavailable:
        return False
    return True
