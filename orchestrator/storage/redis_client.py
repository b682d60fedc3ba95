"""A client of the broker's Redis, the same for orchestrator and workers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import redis

from orchestrator.domain.errors import BrokerUnavailable

Entry = tuple[bytes, dict[bytes, bytes]]
SCAN_COUNT = 1000
"""Keys that Redis looks at for each answer of a scan; its own 10 are a hundred round trips in a farm."""


class Script(Protocol):
    """A registered Lua script."""

    def __call__(self, keys: Sequence[str], args: Sequence[str | int | bytes]) -> int: ...


class RedisClient(Protocol):
    """The commands in use. redis-py's own annotations leave most of them partially unknown."""

    def ping(self) -> bool: ...
    def time(self) -> tuple[int, int]: ...
    def info(self, section: str) -> Mapping[str, object]: ...
    def get(self, name: str | bytes) -> bytes | None: ...
    def mget(self, keys: Sequence[str]) -> list[bytes | None]: ...
    def set(self, name: str, value: str, *, ex: int, nx: bool = False) -> object: ...
    def delete(self, name: str) -> int: ...
    def exists(self, name: str) -> int: ...
    def llen(self, name: str) -> int: ...
    def lrange(self, name: str, start: int, end: int) -> list[bytes]: ...
    def lpop(self, name: str, count: int) -> list[bytes] | None: ...
    def hget(self, name: str, key: str) -> bytes | None: ...
    def hdel(self, name: str, key: str | bytes) -> int: ...
    def hexists(self, name: str, key: str) -> bool: ...
    def hgetall(self, name: str) -> dict[bytes, bytes]: ...
    def hmget(self, name: str, keys: Sequence[str]) -> list[bytes | None]: ...
    def xread(
        self, streams: Mapping[str, str], *, count: int, block: int
    ) -> list[tuple[bytes, list[Entry]]]: ...
    def scan_iter(self, *, match: str, count: int = SCAN_COUNT) -> Iterator[bytes]: ...
    def register_script(self, script: str) -> Script: ...
    def close(self) -> None: ...


def connect(url: str, *, answer_s: float = 30.0) -> RedisClient:
    """For ``redis://…`` and for a private server's ``redis+socket:///PATH`` (kombu's spelling).

    Args:
        answer_s: so long each command may take.

    Raises:
        BrokerUnavailable: nothing answers there.
    """
    library: Any = redis
    try:
        client = cast(
            RedisClient,
            library.Redis.from_url(
                url.replace("redis+socket://", "unix://"),
                socket_connect_timeout=5,
                socket_timeout=answer_s,
                health_check_interval=10,
            ),
        )
        client.ping()
    except redis.AuthenticationError as e:
        raise BrokerUnavailable(
            f"broker {shown(url)}: {str(e).rstrip('.')}. Correct the password: in the file that "
            "TILEFARM_BROKER_PASSWORD_FILE names, or in TILEFARM_BROKER"
        ) from e
    except (redis.RedisError, OSError) as e:
        raise BrokerUnavailable(
            f"broker {shown(url)}: {str(e).rstrip('.')}. Start Redis there or correct TILEFARM_BROKER"
        ) from e
    except (ValueError, TypeError):  # whose words may hold a piece of the password
        raise BrokerUnavailable(
            f"broker {shown(url)}: not a URL of Redis (redis://HOST:PORT/DB; what is special in a password "
            "as %XX). Correct TILEFARM_BROKER, or put the password into a file: TILEFARM_BROKER_PASSWORD_FILE"
        ) from None
    return client


def shown(url: str) -> str:
    """A broker's URL for messages: without user, password (it may hold ``/`` and ``@``) and options."""
    return re.sub(r"(?<=://).*@", "", url).partition("?")[0]
