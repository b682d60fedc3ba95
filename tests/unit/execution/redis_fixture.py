"""Real redis-servers on sockets.

``redis_url`` and ``client`` are of one for all tests, each of which uses run and device ids of its own.
``url``, ``raw`` and ``board`` are of one for a file of tests, empty when each of them begins.
"""

from collections.abc import Generator
from contextlib import closing
from typing import Any

import pytest
import redis

from orchestrator.execution.board import Board
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


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    with private_redis() as found:
        yield found


@pytest.fixture
def raw(url: str) -> Generator[Any]:
    with raw_client(url) as found:
        found.flushall()
        yield found


@pytest.fixture
def board(url: str, raw: object) -> Generator[Board]:
    with closing(Board(url)) as found:
        yield found


def raw_client(redis_url: str) -> Any:
    """redis-py itself, for what the product's own client cannot ask; close it."""
    library: Any = redis
    return library.Redis.from_url(redis_url.replace("redis+socket://", "unix://"))


def seconds_left(redis_url: str, key: str) -> int:
    """Time to live of a key; -1: for ever, -2: it is not there."""
    with raw_client(redis_url) as raw:
        return int(raw.ttl(key))
