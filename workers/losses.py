"""Cases that end their worker: counted outside Celery, found by running suspects alone, and quarantined.

A worker notes each case under its own id before it runs it and strikes that note off with the result. What
is noted of a worker that lives no more, when the work is delivered again, was in hand when that worker died.
Such cases run one by one; the one during which a worker dies again is the culprit, on this driver with this
code, and is not run again for a while. Notes of the living count for nothing: they may have been unable to
strike them off, because Redis was away.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import redis
import structlog

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.digest import stable_id
from orchestrator.domain.errors import WireError
from orchestrator.domain.event import Registration
from orchestrator.domain.job import CaseJob
from orchestrator.domain.moment import utc_now
from orchestrator.domain.names import POISON_TTL_S, RUN_KEYS_TTL_S, begun_key, device_key, poison_key
from orchestrator.domain.trial import trial_key
from orchestrator.domain.wire import unpack
from orchestrator.storage.redis_client import RedisClient
from workers.patience import patiently

LOSSES = 2
"""Workers that a case may end, the last one while it ran alone."""

# KEYS: notes. ARGV: worker, seconds, cases.
_NOTE = """
for i = 3, #ARGV do
  local noted = redis.call('HGET', KEYS[1], ARGV[i]) or ''
  if not string.find(' ' .. noted .. ' ', ' ' .. ARGV[1] .. ' ', 1, true) then
    redis.call('HSET', KEYS[1], ARGV[i], noted == '' and ARGV[1] or noted .. ' ' .. ARGV[1])
  end
end
return redis.call('EXPIRE', KEYS[1], ARGV[2])
"""
# KEYS: notes. ARGV: worker, cases.
_STRIKE_OFF = """
for i = 2, #ARGV do
  local others = {}
  for worker in string.gmatch(redis.call('HGET', KEYS[1], ARGV[i]) or '', '%S+') do
    if worker ~= ARGV[1] then table.insert(others, worker) end
  end
  if #others == 0 then
    redis.call('HDEL', KEYS[1], ARGV[i])
  else
    redis.call('HSET', KEYS[1], ARGV[i], table.concat(others, ' '))
  end
end
return 1
"""
log = structlog.get_logger()


@dataclass(slots=True)
class Sorted:
    together: list[CaseJob] = field(default_factory=list[CaseJob])
    alone: list[CaseJob] = field(default_factory=list[CaseJob])
    """A worker died while they were in hand."""
    dead: list[tuple[CaseJob, str]] = field(default_factory=list[tuple[CaseJob, str]])
    """Not to be run, and why."""

    def groups(self) -> Iterable[Sequence[CaseJob]]:
        if self.together:
            yield self.together
        for job in self.alone:
            yield [job]


class Losses:
    """Of one run on one device, as the worker ``holder`` sees them."""

    def __init__(self, client: RedisClient, run_id: str, record: DeviceRecord, holder: str) -> None:
        self._client = client
        self._record = record
        self._run_id = run_id
        self._holder = holder
        self._key = begun_key(run_id)
        self._note = client.register_script(_NOTE)
        self._strike = client.register_script(_STRIKE_OFF)

    def sort(self, cases: Iterable[CaseJob]) -> Sorted:
        """What may run, and how; a culprit is quarantined on the way."""
        return patiently("cases that ended workers", lambda: self._sort(cases))

    def _sort(self, cases: Iterable[CaseJob]) -> Sorted:
        found, jobs = Sorted(), list(cases)
        if not jobs:
            return found
        living = self._living()
        poisons = self._client.mget([self._poison(job) for job in jobs])
        notes = self._client.hmget(self._key, [self._field(job) for job in jobs])
        for job, known, noted in zip(jobs, poisons, notes, strict=True):
            lost = len(set((noted or b"").decode("utf-8", "replace").split()) - living)
            if known is not None:
                found.dead.append((job, known.decode("utf-8", "replace")))
            elif lost >= LOSSES:
                found.dead.append((job, self._quarantine(job, lost)))
            elif lost:
                found.alone.append(job)
            else:
                found.together.append(job)
        return found

    @contextmanager
    def noted(self, cases: Sequence[CaseJob]) -> Generator[None]:
        """In hand for the block. An error is no death: only what ends the process leaves the notes behind."""
        args = [self._holder, RUN_KEYS_TTL_S, *map(self._field, cases)]
        patiently("cases in hand", lambda: self._note(keys=[self._key], args=args))
        try:
            yield
        except redis.RedisError:
            raise  # patience is at its end already; the notes are those of a living worker
        except Exception:
            self._strike_off(cases)
            raise
        self._strike_off(cases)

    def _strike_off(self, cases: Iterable[CaseJob]) -> None:
        """The results are in: a note that stays for Redis' sake is no reason to lose the rest."""
        try:
            args = [self._holder, *map(self._field, cases)]
            patiently("cases done", lambda: self._strike(keys=[self._key], args=args))
        except redis.RedisError as e:
            log.warning("cases not struck off", run=self._run_id, error=str(e))

    def _living(self) -> set[str]:
        """This worker, and the one that is registered for the device."""
        key = device_key(self._record.device_id)
        text = self._client.get(key)
        try:
            registered = unpack(Registration, text, key).worker_id if text else ""
        except WireError as e:  # of a worker of another version
            log.warning("registration not read", error=str(e))
            registered = ""
        return {self._holder, registered}

    def _quarantine(self, job: CaseJob, lost: int) -> str:
        now = utc_now()
        days = POISON_TTL_S // 86400
        reason = (
            f"it ended {lost} workers in run {self._run_id}, the last one while it ran alone; quarantined on "
            f"this driver since {now}, for {days} days or until its code or the driver changes"
        )
        self._client.set(self._poison(job), reason, ex=POISON_TTL_S)
        return reason

    def _field(self, job: CaseJob) -> str:
        return trial_key(self._record.device_id, job.case_id, job.attempt)

    def _poison(self, job: CaseJob) -> str:
        """The same on every phone with this SoC and driver."""
        profile = self._record.profile(job.api)
        driver = profile.driver_text if profile else ""
        return poison_key(
            stable_id({"soc": self._record.soc.name, "api": job.api, "driver": driver, "code": job.code_hash})
        )
