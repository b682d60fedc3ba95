"""Cases that end their worker: counted outside Celery, found by running suspects alone, and quarantined.

A worker notes each case before it runs it and strikes it off with its result. What is still noted when the
work is delivered again was running when a worker died. Such cases run one by one; the one during which a
worker dies again is the culprit, on this driver with this code, and is not run again for a while.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.digest import stable_id
from orchestrator.domain.job import CaseJob
from orchestrator.domain.names import POISON_TTL_S, RUN_KEYS_TTL_S, begun_key, poison_key
from orchestrator.domain.trial import trial_key
from orchestrator.storage.redis_client import RedisClient

LOSSES = 2
"""Workers that a case may end, the last one while it ran alone."""

_BEGIN = """
redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
return redis.call('EXPIRE', KEYS[1], ARGV[2])
"""


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
    """Of one run on one device."""

    def __init__(self, client: RedisClient, run_id: str, record: DeviceRecord) -> None:
        self._client = client
        self._record = record
        self._run_id = run_id
        self._key = begun_key(run_id)
        self._begin = client.register_script(_BEGIN)

    def sort(self, cases: Iterable[CaseJob]) -> Sorted:
        """What may run, and how; a culprit is quarantined on the way."""
        found = Sorted()
        for job in cases:
            known = self._client.get(self._poison(job))
            noted = self._client.hget(self._key, self._field(job))
            lost = int(noted) if noted else 0
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
        for job in cases:
            self._begin(keys=[self._key], args=[self._field(job), RUN_KEYS_TTL_S])
        try:
            yield
        except Exception:
            self._strike_off(cases)
            raise
        self._strike_off(cases)

    def _strike_off(self, cases: Iterable[CaseJob]) -> None:
        for job in cases:
            self._client.hdel(self._key, self._field(job))

    def _quarantine(self, job: CaseJob, lost: int) -> str:
        now = datetime.now(UTC).isoformat(timespec="seconds")
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
