"""A real redis-server on a socket for all tests; each test uses run and device ids of its own."""

from collections.abc import Generator

import pytest

from orchestrator.execution.private_redis import private_redis
from orchestrator.storage.redis_client import RedisClient, connect


@pytest.fixture(scope="session")
def redis_url() -> Generator[str]:
    with private_redis() as url:
        yield url


@pytest.fixture
def client(redis_url: str) -> Generator[RedisClient]:
    found = connect(redis_url)
    yield found
    found.close()
