"""Where a worker puts results: inserted once in Redis, with an event for whoever watches the run."""

from collections.abc import Iterable

import redis
import structlog

from orchestrator.domain.event import Progress
from orchestrator.domain.job import CaseJob
from orchestrator.domain.names import RUN_KEYS_TTL_S, events_key, trials_key
from orchestrator.domain.trial import Trial, trial_key
from orchestrator.domain.wire import to_json
from orchestrator.storage.redis_client import RedisClient

log = structlog.get_logger()

# One step in Redis, so that a trial is never stored without its event or twice.
_INSERT_ONCE = """
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 1 then
  redis.call('XADD', KEYS[2], '*', 'trial', ARGV[2])
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
    """Trials and progress of one run."""

    def __init__(self, client: RedisClient, run_id: str) -> None:
        self._client = client
        self._trials = trials_key(run_id)
        self._events = events_key(run_id)
        self._insert = client.register_script(_INSERT_ONCE)
        self._tell = client.register_script(_TELL)

    def not_done(self, device_id: str, cases: Iterable[CaseJob]) -> list[CaseJob]:
        """Cases of a (possibly repeated) batch whose result is not in yet."""
        return [
            c
            for c in cases
            if not self._client.hexists(self._trials, trial_key(device_id, c.case_id, c.attempt))
        ]

    def insert(self, trial: Trial) -> bool:
        """Insert once; False when this (device, case, attempt) had a result already."""
        done = self._insert(
            keys=[self._trials, self._events], args=[trial.key, to_json(trial), RUN_KEYS_TTL_S]
        )
        return done == 1

    def progress(self, news: Progress) -> None:
        """Tell whoever watches; news that cannot be told is no reason to lose the batch that it is about."""
        try:
            self._tell(keys=[self._events], args=[to_json(news), RUN_KEYS_TTL_S])
        except redis.RedisError as e:
            log.warning("progress not told", error=str(e))
