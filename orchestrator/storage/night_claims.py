"""Nights in Redis: one orchestrator of the farm has each, and all can read what became of it."""

import structlog

from orchestrator.domain.errors import WireError
from orchestrator.domain.night import NIGHT_KEY_PREFIX, NIGHT_TTL_S, NightRecord
from orchestrator.domain.wire import pack, unpack
from orchestrator.storage.redis_client import RedisClient

# In one step: of several orchestrators that want a night, one gets it.
_CLAIM = """
local there = redis.call('GET', KEYS[1])
if there and there ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[3])
return 1
"""
log = structlog.get_logger()


class NightClaims:
    """Raises redis.RedisError where Redis does not answer."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._claim = client.register_script(_CLAIM)

    def claim(self, record: NightRecord) -> NightRecord:
        """The record that counts: this one, or that of whoever was first.

        That somebody told a night as missed, whose clock may be ahead, keeps nobody from starting it.
        """
        key = NIGHT_KEY_PREFIX + record.night
        if self._claim([key], [pack(record), "", NIGHT_TTL_S]):
            return record
        there = self._client.get(key)
        found = self._get(key)
        if there is not None and found is not None and (found.state, record.state) == ("missed", "started"):
            told = there.decode("utf-8", "surrogateescape")
            if self._claim([key], [pack(record), told, NIGHT_TTL_S]):
                return record
            found = self._get(key)
        return found or record

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
