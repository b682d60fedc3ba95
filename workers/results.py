"""Where a worker puts results: inserted once in Redis, with an event for whoever watches the run."""

import time
from collections.abc import Iterable
from dataclasses import replace

import redis
import structlog

from orchestrator.domain.errors import LeaseLost, WireError
from orchestrator.domain.event import Progress
from orchestrator.domain.job import CaseJob
from orchestrator.domain.lease import Lease
from orchestrator.domain.names import RUN_KEYS_TTL_S, events_key, token_key, trials_key
from orchestrator.domain.trial import Trial, trial_key, unreadable_trial
from orchestrator.domain.wire import pack
from orchestrator.storage.redis_client import RedisClient
from workers.patience import QUIET_S, patiently

log = structlog.get_logger()

# One step in Redis, so that a trial is never stored without its event or twice.
# The newest token is that of whoever had the device last: an older one may no longer write.
_INSERT_ONCE = """
if ARGV[4] ~= '' then
  local newest = redis.call('GET', KEYS[3])
  if newest and newest ~= ARGV[4] then return -1 end
end
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 1 then
  redis.call('XADD', KEYS[2], '*', 'key', ARGV[1], 'device', ARGV[5], 'trial', ARGV[2])
  redis.call('EXPIRE', KEYS[1], ARGV[3])
  redis.call('EXPIRE', KEYS[2], ARGV[3])
  return 1
end
return 0
"""
# Also a run that never has a trial must end by itself in Redis.
_TELL = """
redis.call('XADD', KEYS[1], '*', 'progress', ARGV[1])
return redis.call('EXPIRE', KEYS[1], ARGV[2])
"""


class ResultSink:
    """Trials and progress of one run.

    Args:
        planned_for: target of the run that the cases belong to, where that is not their device.
    """

    def __init__(self, client: RedisClient, run_id: str, planned_for: str = "") -> None:
        self._client = client
        self._planned_for = planned_for
        self._trials = trials_key(run_id)
        self._events = events_key(run_id)
        self._insert = client.register_script(_INSERT_ONCE)
        self._tell = client.register_script(_TELL)
        self._quiet_until = 0.0

    def not_done(self, device_id: str, cases: Iterable[CaseJob]) -> list[CaseJob]:
        """Cases of a (possibly repeated) batch whose result is not in yet."""
        wanted = list(cases)
        if not wanted:
            return []
        keys = [trial_key(self._planned_for or device_id, c.case_id, c.attempt) for c in wanted]
        found = patiently("results so far", lambda: self._client.hmget(self._trials, keys))
        return [case for case, trial in zip(wanted, found, strict=True) if trial is None]

    def insert(self, trial: Trial, lease: Lease | None = None) -> bool:
        """Insert once; False when this (device, case, attempt) had a result already. A Redis that is away is
        waited for (``patience.OUTAGE_S``): minutes of measuring are in the trial.

        Args:
            lease: under which the device was used; None for rows about a device that was never had.

        Raises:
            LeaseLost: somebody has had the device since, so that the result counts for nothing.
            redis.RedisError: Redis stayed away.
        """
        trial = replace(trial, planned_for=self._planned_for)
        keys = [self._trials, self._events, token_key(trial.device_id)]
        args = [trial.key, _packed(trial), RUN_KEYS_TTL_S, str(lease.token) if lease else "", trial.device_id]
        done = patiently("result", lambda: self._insert(keys=keys, args=args))
        if done < 0:
            raise LeaseLost(f"{trial.device_id}: a newer lease was granted; the result is refused")
        return done == 1

    def progress(self, news: Progress) -> None:
        """Tell whoever watches; news that cannot be told is no reason to lose the batch that it is about."""
        if time.monotonic() < self._quiet_until:
            return
        try:
            told = pack(replace(news, planned_for=self._planned_for))
            self._tell(keys=[self._events], args=[told, RUN_KEYS_TTL_S])
        except (redis.RedisError, WireError) as e:
            self._quiet_until = time.monotonic() + QUIET_S
            log.warning("progress not told", error=str(e))


def _packed(trial: Trial) -> str:
    """A result that cannot be sent is one without its measurement, and says so: its case waits for it."""
    try:
        return pack(trial)
    except WireError as e:
        return pack(
            unreadable_trial(
                trial.run_id, trial.device_id, trial.key, f"its {trial.verdict} cannot be sent: {e}"
            )
        )
