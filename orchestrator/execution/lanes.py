"""What is outstanding on one target of a run, a device or a pool of phones, and how it becomes batches."""

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.domain.job import Batch, CanaryJob, CaseJob
from orchestrator.domain.run_state import Target
from orchestrator.domain.trial import Trial, trial_key
from orchestrator.planning.plan import BATCH_CASES, BATCH_S

MANY_CASES = 64
"""In a batch whose times are known: driver and canaries are opened once for all of them."""
PACES = (0.05, 20.0)
"""A plan may be wrong by so much; beyond that a single odd case would rule the size of batches."""
WINDOW = 2
"""Batches of a device in the farm's queues: one that runs and one that follows it without a gap. More would
stand before those of other people. A pool has one that runs on each of its phones, and one that follows."""


DOUBT_S = BATCH_S
"""What stands in a pool's queue begins in this time: a phone that works is done with its batch by then."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    cases: int = BATCH_CASES
    """Until the times of a target are known."""
    many: int = MANY_CASES
    seconds: float = BATCH_S


@dataclass(slots=True)
class Pace:
    """How long cases really take, as a factor of their estimates."""

    planned_ms: float = 0.0
    taken_ms: float = 0.0
    seen: int = 0

    def add(self, job: CaseJob, trial: Trial) -> None:
        """Older cases count less: a phone gets warm, and the next cases resemble the last ones."""
        self.seen += 1
        if job.estimate_ms > 0 and trial.duration_ms > 0:
            self.planned_ms = 0.95 * self.planned_ms + job.estimate_ms
            self.taken_ms = 0.95 * self.taken_ms + trial.duration_ms

    @property
    def factor(self) -> float:
        if not self.planned_ms:
            return 1.0
        return min(max(self.taken_ms / self.planned_ms, PACES[0]), PACES[1])


@dataclass(slots=True)
class Lane:
    """All of one target. ``key`` below is a trial's (target, case, attempt)."""

    target: str
    """Device id, or the id of a pool."""
    devices: Sequence[str]
    """That may do its cases: the device itself, or the pool's phones."""
    soc: str
    """Whose queue serves a pool, or phones that stand in."""
    pool: bool = False
    canaries: Sequence[CanaryJob] = ()
    outstanding: dict[str, CaseJob] = field(default_factory=dict[str, CaseJob])
    planned_ms: int = 0
    """Of all that is outstanding."""
    elsewhere: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Key → phones that may do it instead."""
    flights: dict[str, tuple[Batch, frozenset[str]]] = field(
        default_factory=dict[str, tuple[Batch, frozenset[str]]]
    )
    """Batch id → what was sent and is not settled, with its keys."""
    later: dict[str, float] = field(default_factory=dict[str, float])
    """Key → when it may be sent: a phone that restarts needs a while."""
    workers: dict[str, str] = field(default_factory=dict[str, str])
    """Device → worker that serves it."""
    pace: Pace = field(default_factory=Pace)
    total: int = 0
    done: int = 0
    lost: int = 0
    last_seen: float = 0.0
    last_news: float = 0.0
    last_begun: float = 0.0
    last_recall: float = -1.0
    """When all was sent once more because there was no news; once is enough until there is some."""
    begun: dict[str, str] = field(default_factory=dict[str, str])
    """Id of each flight that was heard to begin → the device that took it, the last one where copies were."""
    doubtful: dict[str, float] = field(default_factory=dict[str, float])
    """Id of a flight that a dead worker may have had → when it is sent once more, unless it has begun."""
    aged: bool = False
    """A copy of its next batch stands in the on-demand lane."""
    redispatches: Counter[str] = field(default_factory=Counter[str])
    """Device → workers of it that were replaced since the target's last result."""
    unprepared: int = 0
    """Cases that become jobs later."""
    given_up: bool = False
    """Nobody waits for it any more; what is prepared for it later is lost, too."""
    why: str = ""
    waiting_since: str = ""
    """UTC, ISO 8601; empty: it works, or has nothing to do."""

    def key(self, job: CaseJob) -> str:
        return trial_key(self.target, job.case_id, job.attempt)

    def add(self, job: CaseJob) -> None:
        self.outstanding[self.key(job)] = job
        self.planned_ms += job.estimate_ms

    @property
    def longest_s(self) -> float:
        """A case that rests between its replays may be silent for so long, and rightly."""
        return max((job.deadline_ms for job in self.outstanding.values()), default=0) / 1000

    @property
    def left_s(self) -> float:
        return self.planned_ms / 1000 * self.pace.factor

    @property
    def running(self) -> bool:
        """A batch of it has begun, and its cases are not all in."""
        return bool(self.begun)

    @property
    def next_in_queue(self) -> Batch | None:
        """The first batch that was sent and has not begun."""
        return next((batch for i, (batch, _) in self.flights.items() if i not in self.begun), None)

    def begin(self, batch_id: str, device_id: str, now: float) -> None:
        """One of an earlier dispatcher, or sent before a recall, is none of the flights. What the same device
        began before and is not in, it has no more: its worker died, or put it back."""
        for earlier, taker in self.begun.items():
            if taker == device_id and earlier != batch_id:
                self.doubtful.setdefault(earlier, now + DOUBT_S)
        if batch_id in self.flights:
            self.begun[batch_id] = device_id
            self.doubtful.pop(batch_id, None)

    @property
    def deaths(self) -> str:
        """How often workers died since its last result, in words."""
        if len(self.devices) == 1:
            return f"its worker died {self.redispatches.total()} times"
        times = ", ".join(f"{d} {count} times" for d, count in sorted(self.redispatches.items()))
        return f"the workers of its phones died without a result between: {times}"

    @property
    def place(self) -> Target:
        """Where its work is done, for who else works there; asked each time that anything happens."""
        return Target("" if self.pool else self.target, self.soc, "", self.total, devices=list(self.devices))

    def told(self, name: str, now: str) -> Target:
        """How far it is, for everybody.

        Args:
            name: of its device.
            now: UTC, ISO 8601.
        """
        if not self.outstanding or self.running:
            self.waiting_since = ""
        elif not self.waiting_since:
            self.waiting_since = now
        flying = frozenset[str]().union(*(keys for _, keys in self.flights.values()))
        return replace(
            self.place,
            name=f"any of {len(self.devices)} {self.soc}" if self.pool else name,
            total=self.total + self.unprepared,
            done=self.done,
            lost=self.lost,
            flying=len(flying & self.outstanding.keys()),
            left_s=round(self.left_s, 1),
            waiting_since=self.waiting_since,
            why=self.why,
        )

    def settle(self, trial: Trial) -> CaseJob | None:
        """Strike a case off; None where nobody waited for it any more."""
        self.redispatches.clear()
        job = self.outstanding.pop(trial.key, None)
        self.elsewhere.pop(trial.key, None)
        self.later.pop(trial.key, None)
        if job is not None:
            self.planned_ms -= job.estimate_ms
            self.pace.add(job, trial)
        self._land()
        return job

    def fills(self, limits: BatchLimits) -> bool:
        """Is there enough for a whole batch beside those that were sent?"""
        flying = sum(len(keys) for _, keys in self.flights.values())
        return len(self.outstanding) - flying >= limits.cases

    def clear(self) -> int:
        """Wait for nothing any more; returns how many cases that were."""
        count = len(self.outstanding)
        self.planned_ms = 0
        self.outstanding.clear()
        self.elsewhere.clear()
        self.later.clear()
        self._drop(list(self.flights))
        return count

    def recall(self) -> None:
        """All that was sent is to be sent once more: the queue was lost, or nobody says anything."""
        self._drop(list(self.flights))
        self.aged = False

    def recall_from(self, device_id: str, now: float) -> None:
        """What the worker of one device had in hand is to be sent once more: it died.

        All of a lane of one device, as ever: the device takes one batch after the other, and leaves out what
        is in by then (``workers.results.ResultSink.not_done``). Of several phones' flights only the one that
        this device was heard to begin: others have theirs in hand, and a copy that begins meanwhile is
        measured twice for its one result, since what is in is asked for at a batch's beginning only.

        A worker has one batch at a time (prefetch 1, acknowledged late). One that was not heard to have any
        may have taken a flight that nobody has begun, and said nothing yet; the others of those stand in the
        queue, where a copy behind them would begin while they run. So they have ``DOUBT_S`` to begin, and
        only what has not is sent once more. Should it stand in the queue even then, because the phones work
        for somebody else, it is measured twice where both copies are taken within the time that one needs;
        else whoever comes second finds all results there and acknowledges it unseen.
        """
        if len(self.devices) == 1:
            self.recall()
            return
        theirs = [i for i, taker in self.begun.items() if taker == device_id]
        self._drop(theirs)
        if not theirs:
            for batch_id in self.flights.keys() - self.begun.keys():
                self.doubtful.setdefault(batch_id, now + DOUBT_S)

    def recall_doubtful(self, now: float) -> None:
        """Also flights that one may have had, and that have not begun in the time that they were given."""
        self._drop([batch_id for batch_id, until in self.doubtful.items() if until <= now])

    def due(
        self, blob_store: str, run_id: str, limits: BatchLimits, now: float, soc_of: Mapping[str, str]
    ) -> Batch | None:
        """The next batch, or None while enough is in the queues, or nothing may be sent now.

        A batch has one API: its canary vouches for nothing but that, and no process opens two drivers. What
        ended in ``infra`` before goes alone: what breaks the device must not drag innocent cases along again.
        """
        phones = len(self.workers) if self.pool else 1
        if len(self.flights) >= max(WINDOW, phones + WINDOW - 1):
            return None
        flying = frozenset[str]().union(*(keys for _, keys in self.flights.values()))
        waiting = [
            (key, job)
            for key, job in self.outstanding.items()
            if key not in flying and self.later.get(key, now) <= now
        ]
        cases = [job for _, job in self._take(waiting, limits)]
        if not cases:
            return None
        address = self.elsewhere.get(self.key(cases[0])) or (tuple(self.devices) if self.pool else ())
        return Batch(
            run_id=run_id,
            batch_id=uuid.uuid4().hex[:12],
            device_id="" if address else self.target,
            blob_store=blob_store,
            cases=cases,
            canaries=[self._canary(c, bool(address)) for c in self.canaries if c.job.api == cases[0].api],
            soc=soc_of[address[0]] if address else "",
            only_on=list(address),
            planned_for=self.target if address else "",
        )

    def sent(self, batch: Batch) -> None:
        self.flights[batch.batch_id] = (batch, frozenset(self.key(job) for job in batch.cases))

    def _take(
        self, waiting: Sequence[tuple[str, CaseJob]], limits: BatchLimits
    ) -> Iterator[tuple[str, CaseJob]]:
        if not waiting:
            return
        first_key, first = waiting[0]
        yield waiting[0]
        if first.attempt > 1:
            return
        most = limits.many if self.pace.seen >= limits.cases else limits.cases
        taken, planned_ms = 1, first.estimate_ms * self.pace.factor
        for key, job in waiting[1:]:
            together = job.attempt == 1 and job.api == first.api
            if not together or self.elsewhere.get(key) != self.elsewhere.get(first_key):
                continue
            planned_ms += job.estimate_ms * self.pace.factor
            if taken == most or planned_ms > limits.seconds * 1000:
                return
            taken += 1
            yield key, job

    def _land(self) -> None:
        """Flights with all their results in are over."""
        self._drop([i for i, (_, keys) in self.flights.items() if keys.isdisjoint(self.outstanding)])

    def _drop(self, batch_ids: Iterable[str]) -> None:
        """They are no flights any more."""
        for batch_id in batch_ids:
            del self.flights[batch_id]
            self.begun.pop(batch_id, None)
            self.doubtful.pop(batch_id, None)
        if not self.flights:
            self.aged = False

    def _canary(self, canary: CanaryJob, shared: bool) -> CanaryJob:
        """What another phone's canary took says nothing: a batch for several has no expected latency."""
        return replace(canary, expected=type(canary.expected)()) if shared else canary


def lanes_of(
    jobs: Mapping[str, Sequence[CaseJob]], make: Callable[[str], Lane], now: float
) -> dict[str, Lane]:
    """A lane for each target, with its jobs outstanding."""
    found: dict[str, Lane] = {}
    for target, cases in jobs.items():
        lane = found[target] = make(target)
        lane.last_seen = lane.last_news = lane.last_begun = now
        lane.total = len(cases)
        for job in cases:
            lane.add(job)
    return found
