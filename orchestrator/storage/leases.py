"""Leases and holds of devices in Redis. Each step is one script, and time is the server's alone.

Tokens are microseconds of Redis time, or the last token plus one where that is not larger: they grow also
over a Redis that lost its data, and clocks of hosts have no say in them.
"""

from collections.abc import Iterable

import structlog

from orchestrator.domain.device_check import read_hold
from orchestrator.domain.errors import WireError
from orchestrator.domain.lease import Hold, Lease
from orchestrator.domain.names import (
    HOLD_KEY_PREFIX,
    LEASE_TTL_S,
    hold_key,
    lease_key,
    token_key,
)
from orchestrator.domain.wire import pack
from orchestrator.storage.redis_client import SCAN_COUNT, RedisClient

log = structlog.get_logger()
_NEXT_IN_LINE = """
local function next_in_line(key)
  local now = redis.call('TIME')
  local token = now[1] * 1000000 + now[2]
  local last = tonumber(redis.call('GET', key) or '0')
  if token <= last then token = last + 1 end
  redis.call('SET', key, string.format('%.0f', token))
  return token
end
"""
# KEYS: lease, token, hold. ARGV: holder, milliseconds.
_CLAIM = (
    _NEXT_IN_LINE
    + """
if redis.call('EXISTS', KEYS[3]) == 1 or redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local token = next_in_line(KEYS[2])
redis.call('SET', KEYS[1], string.format('%.0f', token) .. ' ' .. ARGV[1], 'PX', ARGV[2])
return token
"""
)
# KEYS: lease, token, hold. ARGV: token, holder, milliseconds. A lease that ended unseen (Redis was away)
# comes back only if nobody had the device meanwhile.
_RENEW = """
local mine = ARGV[1] .. ' ' .. ARGV[2]
local held = redis.call('GET', KEYS[1])
if held == mine then return redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
local newest = redis.call('GET', KEYS[2])
if held or (newest and newest ~= ARGV[1]) or redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
redis.call('SET', KEYS[2], ARGV[1])
redis.call('SET', KEYS[1], mine, 'PX', ARGV[3])
return 1
"""
# KEYS: lease. ARGV: token, holder.
_END = """
if redis.call('GET', KEYS[1]) == ARGV[1] .. ' ' .. ARGV[2] then return redis.call('DEL', KEYS[1]) end
return 0
"""
# KEYS: hold. ARGV: hold.
_HOLD = """
return redis.call('SETNX', KEYS[1], ARGV[1])
"""
# KEYS: lease, token, hold. ARGV: hold. Another person may have the device by now: theirs stays. A worker that
# was paused through all of the hold, which nobody waited out, must not write about that time.
_RELEASE = (
    _NEXT_IN_LINE
    + """
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return 0 end
if redis.call('EXISTS', KEYS[1]) == 0 then next_in_line(KEYS[2]) end
return redis.call('DEL', KEYS[3])
"""
)
# KEYS: lease, token. No lease lives: whoever had the last one and was paused must not write any more.
_FENCE = (
    _NEXT_IN_LINE
    + """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
next_in_line(KEYS[2])
return 1
"""
)


class Leases:
    """All devices of a farm; raises redis.RedisError where Redis does not answer."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._claim = client.register_script(_CLAIM)
        self._renew = client.register_script(_RENEW)
        self._end = client.register_script(_END)
        self._hold = client.register_script(_HOLD)
        self._release = client.register_script(_RELEASE)
        self._fence = client.register_script(_FENCE)

    def claim(self, device_id: str, holder: str, ttl_s: float = LEASE_TTL_S) -> Lease | None:
        """The device for ``holder`` alone, or None while another lease or a hold stands."""
        token = self._claim(keys=_keys(device_id), args=[holder, _ms(ttl_s)])
        return Lease(device_id, holder, token) if token else None

    def renew(self, lease: Lease, ttl_s: float = LEASE_TTL_S) -> bool:
        """False: the lease is lost, and somebody else may use the device."""
        args = [str(lease.token), lease.holder, _ms(ttl_s)]
        return self._renew(keys=_keys(lease.device_id), args=args) == 1

    def end(self, lease: Lease) -> None:
        self._end(keys=[lease_key(lease.device_id)], args=[str(lease.token), lease.holder])

    def hold(self, hold: Hold) -> bool:
        """No new lease from now on; False where somebody holds the device already."""
        return self._hold(keys=[hold_key(hold.device_id)], args=[pack(hold)]) == 1

    def fence(self, device_id: str) -> bool:
        """True once no lease lives; from then on results of earlier leases are refused."""
        return self._fence(keys=[lease_key(device_id), token_key(device_id)], args=[]) == 1

    def leased(self, device_ids: Iterable[str]) -> frozenset[str]:
        """Those of them that somebody has in hand now."""
        return frozenset(i for i in device_ids if self._client.exists(lease_key(i)))

    def release(self, hold: Hold) -> bool:
        """End this hold, as it was read; False where it is there no more, though another one may be."""
        text = self._client.get(hold_key(hold.device_id))
        if text is None or _read(hold.device_id, text) != hold:
            return False
        return self._release(keys=_keys(hold.device_id), args=[text]) == 1

    def held(self, device_id: str) -> Hold | None:
        text = self._client.get(hold_key(device_id))
        return _read(device_id, text) if text else None

    def holds(self) -> dict[str, Hold]:
        """By device id."""
        keys = sorted(self._client.scan_iter(match=f"{HOLD_KEY_PREFIX}*", count=SCAN_COUNT))
        texts = (
            (key.decode("utf-8", "replace").removeprefix(HOLD_KEY_PREFIX), self._client.get(key))
            for key in keys
        )
        return {device_id: _read(device_id, text) for device_id, text in texts if text}


def _read(device_id: str, text: bytes) -> Hold:
    """One that cannot be read (of another version, say) holds its device all the same."""
    try:
        return read_hold(text, hold_key(device_id))
    except WireError as e:
        log.warning("hold not read", error=str(e))
        return Hold(device_id, by="somebody", why=f"their words cannot be read ({e})", since="?")


def _keys(device_id: str) -> list[str]:
    return [lease_key(device_id), token_key(device_id), hold_key(device_id)]


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))
