"""What a worker tells its host's agent about the device: bounded, and never worth losing a batch for."""

from collections.abc import Iterator

import redis
import structlog

from orchestrator.domain.agent import News
from orchestrator.domain.errors import WireError
from orchestrator.domain.health import Failed, Vitals, Vouched
from orchestrator.domain.names import NEWS_KEPT, RUN_KEYS_TTL_S, news_key
from orchestrator.domain.wire import pack, unpack_one
from orchestrator.storage.redis_client import RedisClient

_KINDS: tuple[type[News], ...] = (Vitals, Failed, Vouched)
_TELL = """
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[2]), -1)
return redis.call('EXPIRE', KEYS[1], ARGV[3])
"""
log = structlog.get_logger()


def tell(client: RedisClient, device_id: str, news: News) -> None:
    try:
        client.register_script(_TELL)(
            keys=[news_key(device_id)], args=[pack(news), NEWS_KEPT, RUN_KEYS_TTL_S]
        )
    except (redis.RedisError, WireError) as e:
        log.warning("agent not told", error=str(e))


def heard(client: RedisClient, device_id: str) -> Iterator[News]:
    """Everything since the last call, oldest first; what is not news is named in the log and left out."""
    for text in client.lpop(news_key(device_id), NEWS_KEPT) or ():
        try:
            yield unpack_one(_KINDS, text, news_key(device_id))
        except WireError as e:
            log.warning("no news", error=str(e))
