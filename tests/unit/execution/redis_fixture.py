"""A real redis-server on a socket for all tests; each test uses run and device ids of its own."""

from collections.abc import Generator
from typing import Any

import pytest
import redis

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


def raw_client(redis_url: str) -> Any:
    """redis-py itself, for what the product's own client cannot ask; close it."""
    library: Any = redis
    return library.Redis.from_url(redis_url.replace("redis+socket://", "unix://"))


def seconds_left(redis_url: str, key: str) -> int:
    """Time to live of a key; -1: for ever, -2: it is not there."""
    with raw_client(redis_url) as raw:
        return int(raw.ttl(key))
