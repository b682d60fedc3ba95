"""What a worker must know of a run: was it ended, and does it still wait for this device?"""

import time

import redis
import structlog

from orchestrator.domain.errors import RunCancelled
from orchestrator.domain.names import RUN_KEYS_TTL_S, cancelled_key, given_up_key
from orchestrator.storage.redis_client import RedisClient
from workers.patience import QUIET_S, patiently

POLL_S = 1.0
_GIVE_UP = """
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return redis.call('EXPIRE', KEYS[1], ARGV[3])
"""
log = structlog.get_logger()


class RunWatch:
    """Of one run on one device."""

    def __init__(self, client: RedisClient, run_id: str, device_id: str) -> None:
        self._client = client
        self._run_id = run_id
        self._device_id = device_id
        self._give_up = client.register_script(_GIVE_UP)
        self._next = 0.0

    def check(self) -> None:
        """Was the run ended? Cheap: Redis is asked once a second at most, and one that is away says nothing.

        Raises:
            RunCancelled: it was; says why.
        """
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + POLL_S
        try:
            why = self._client.get(cancelled_key(self._run_id))
        except redis.RedisError as e:
            self._next = time.monotonic() + QUIET_S
            log.warning("whether the run goes on is not known", run=self._run_id, error=str(e))
            return
        if why is not None:
            raise RunCancelled(f"{self._run_id}: {why.decode('utf-8', 'replace')}")

    def given_up(self) -> str:
        """Why the run waits for this device no more; empty: it does."""
        key = given_up_key(self._run_id)
        why = patiently("given up", lambda: self._client.hget(key, self._device_id))
        return (why or b"").decode("utf-8", "replace")

    def give_up(self, why: str) -> None:
        """A person has the device, or it was waited for in vain: no other batch of the run waits again."""
        keys, args = [given_up_key(self._run_id)], [self._device_id, why, RUN_KEYS_TTL_S]
        patiently("give up", lambda: self._give_up(keys=keys, args=args))
