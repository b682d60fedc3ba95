"""Nights in Redis: one orchestrator of the farm has each, and all can read what became of it."""

import structlog

from orchestrator.domain.errors import WireError
from orchestrator.domain.night import NIGHT_KEY_PREFIX, NIGHT_TTL_S, NightRecord
from orchestrator.domain.wire import pack, unpack
from orchestrator.storage.redis_client import RedisClient

log = structlog.get_logger()


class NightClaims:
    """Raises redis.RedisError where Redis does not answer."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    def claim(self, record: NightRecord) -> NightRecord:
        """The record that counts: this one, or that of whoever was first."""
        key = NIGHT_KEY_PREFIX + record.night
        if self._client.set(key, pack(record), ex=NIGHT_TTL_S, nx=True):
            return record
        return self._get(key) or record

    def publish(self, record: NightRecord) -> None:
        """What became of a night of ours."""
        self._client.set(NIGHT_KEY_PREFIX + record.night, pack(record), ex=NIGHT_TTL_S)

    def all(self) -> dict[str, NightRecord]:
        """By night id, oldest first."""
        keys = sorted(
            key.decode("utf-8", "replace") for key in self._client.scan_iter(match=f"{NIGHT_KEY_PREFIX}*")
        )
        found = (record for key in keys if (record := self._get(key)) is not None)
        return {record.night: record for record in found}

    def _get(self, key: str) -> NightRecord | None:
        """None: gone, or of another version."""
        text = self._client.get(key)
        try:
            record = unpack(NightRecord, text, key) if text else None
            if record is not None:
                record.check(key.removeprefix(NIGHT_KEY_PREFIX))
            return record
        except WireError as e:
            log.warning("night not read", error=str(e))
            return None
