"""What a worker tells its host's agent about the device: bounded, and never worth losing a batch for."""

from collections.abc import Iterator

import redis
import structlog

from orchestrator.domain.agent import News
from orchestrator.domain.errors import WireError
from orchestrator.domain.health import Failed, Vitals, Vouched
from orchestrator.domain.names import NEWS_KEPT, RUN_KEYS_TTL_S, news_key
from orchestrator.domain.wire import from_json, to_json
from orchestrator.storage.redis_client import RedisClient

_KINDS: dict[str, type[News]] = {"vitals": Vitals, "failed": Failed, "vouched": Vouched}
_TELL = """
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[2]), -1)
return redis.call('EXPIRE', KEYS[1], ARGV[3])
"""
log = structlog.get_logger()


def tell(client: RedisClient, device_id: str, news: News) -> None:
    kind = next(kind for kind, cls in _KINDS.items() if isinstance(news, cls))
    try:
        client.register_script(_TELL)(
            keys=[news_key(device_id)], args=[f"{kind} {to_json(news)}", NEWS_KEPT, RUN_KEYS_TTL_S]
        )
    except redis.RedisError as e:
        log.warning("agent not told", error=str(e))


def heard(client: RedisClient, device_id: str) -> Iterator[News]:
    """Everything since the last call, oldest first; what is not news is named in the log and left out."""
    for text in client.lpop(news_key(device_id), NEWS_KEPT) or ():
        kind, _, body = text.partition(b" ")
        cls = _KINDS.get(kind.decode("ascii", "replace"))
        try:
            if cls is not None:
                yield from_json(cls, body, news_key(device_id))
        except WireError as e:
            log.warning("no news", error=str(e))
