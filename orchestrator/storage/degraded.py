"""Notes about replaced workers in Redis: left by agents and workers, read by runs when they end."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import structlog

from orchestrator.domain.degraded import Degraded
from orchestrator.domain.errors import WireError
from orchestrator.domain.names import DEGRADED_KEPT, RUN_KEYS_TTL_S, degraded_key
from orchestrator.domain.wire import pack, unpack
from orchestrator.storage.redis_client import RedisClient

_NOTE = """
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[2]), -1)
return redis.call('EXPIRE', KEYS[1], ARGV[3])
"""
log = structlog.get_logger()


def note_degraded(client: RedisClient, device_id: str, why: str) -> None:
    """
    Raises:
        redis.RedisError: Redis does not answer.
    """
    at = _server_time(client).isoformat(timespec="seconds")
    client.register_script(_NOTE)(
        keys=[degraded_key(device_id)], args=[pack(Degraded(at, why)), DEGRADED_KEPT, RUN_KEYS_TTL_S]
    )


def degraded_since(client: RedisClient, device_ids: Iterable[str], since: datetime) -> list[str]:
    """Sentences about these devices, oldest first of each; what is no note is named in the log and left out.

    Args:
        since: by this host's clock, which may be another one than that of Redis.

    Raises:
        redis.RedisError: Redis does not answer.
    """
    ahead = timedelta(seconds=round((_server_time(client) - datetime.now(UTC)).total_seconds()))
    found: list[str] = []
    for device_id in device_ids:
        key = degraded_key(device_id)
        for text in client.lrange(key, 0, -1):
            try:
                note = unpack(Degraded, text, key)
                note.check(key)
            except WireError as e:
                log.warning("left out", error=str(e))
                continue
            if note.moment - ahead >= since:
                found.append(note.sentence(device_id))
    return found


def _server_time(client: RedisClient) -> datetime:
    seconds, microseconds = client.time()
    return datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=microseconds)
