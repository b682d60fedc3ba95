"""A farm in memory: workers that obey a script, a clock that moves only when somebody waits."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.domain.event import Progress, Registration
from orchestrator.domain.job import Batch, CaseJob
from orchestrator.domain.names import Lane
from orchestrator.domain.run_state import RunState
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from tests.results_fixture import device

Verdicts = Callable[[CaseJob], Verdict | None]
"""What a worker's trial of a job ends in; None: it is never heard of."""


def passes(job: CaseJob) -> Verdict | None:
    del job
    return Verdict.PASS


def silent(job: CaseJob) -> Verdict | None:
    del job
    return None


@dataclass(slots=True)
class FakeFarm:
    """Implements :class:`orchestrator.execution.farm.Farm`."""

    workers: dict[str, str] = field(default_factory=dict[str, str])
    """Device → id of the worker that serves it now."""
    verdicts: Verdicts = passes
    at_poll: dict[int, Callable[[], None]] = field(default_factory=dict[int, Callable[[], None]])
    """What happens just before the n-th poll of the stream (from 1)."""
    clock: float = 1000.0
    polls: int = 0
    sent: list[tuple[Batch, Lane]] = field(default_factory=list[tuple[Batch, Lane]])
    stream: dict[str, list[Trial | Progress]] = field(default_factory=dict[str, list[Trial | Progress]])
    """Run → its events; entry n has the id ``n-0``."""
    ended: dict[str, str] = field(default_factory=dict[str, str])
    """Run → why a person ended it."""
    waits_no_more: dict[str, str] = field(default_factory=dict[str, str])
    """Device → why its worker cannot have it."""
    known: dict[str, str] = field(default_factory=dict[str, str])
    """Device → what is said of it while no worker serves it."""
    deaf: dict[str, str] = field(default_factory=dict[str, str])
    """Device → why its worker was replaced."""
    redis: str = "redis-1"
    """Another one after a restart; empty: it is away."""
    others: list[RunState] = field(default_factory=list[RunState])
    """States of other runs."""
    states: list[RunState] = field(default_factory=list[RunState])
    """That were published."""
    took_ms: Callable[[CaseJob], int] = lambda job: 0
    """What a trial says that it took; 0: it does not say."""
    _queue: list[Batch] = field(default_factory=list[Batch])

    def now(self) -> float:
        return self.clock

    def sleep(self, seconds: float) -> None:
        self.polls += 1
        self.clock += seconds
        self.at_poll.get(self.polls, lambda: None)()

    def epoch(self) -> str:
        if not self.redis:
            raise BrokerUnavailable("broker redis://made-up: away")
        return self.redis

    def restart(self) -> None:
        """Redis comes back without what was queued."""
        self.redis += "+"
        self._queue.clear()

    def publish(self, state: RunState) -> None:
        self.states.append(state)

    def runs(self) -> Sequence[RunState]:
        return self.others

    def registrations(self) -> Mapping[str, Registration]:
        return {
            d: Registration(device(d), w, "2026-12-01T01:00:00+00:00", 1) for d, w in self.workers.items()
        }

    def send(self, batch: Batch, lane: Lane) -> None:
        self.sent.append((batch, lane))
        self._queue.append(batch)

    def cancelled(self, run_id: str) -> str:
        return self.ended.get(run_id, "")

    def given_up(self, run_id: str) -> Mapping[str, str]:
        del run_id
        return self.waits_no_more

    def whereabouts(self, device_id: str) -> str:
        return self.known.get(device_id, "")

    def degraded(self, device_ids: Iterable[str], since: str) -> Sequence[str]:
        return [f"{d} since {since}: {self.deaf[d]}" for d in device_ids if d in self.deaf]

    def events(self, run_id: str, after: str, block_ms: int) -> Iterator[tuple[str, Trial | Progress | None]]:
        self.polls += 1
        self.clock += block_ms / 1000
        self.at_poll.get(self.polls, lambda: None)()
        self._work()
        for number, event in enumerate(self.stream.get(run_id, []), start=1):
            if number > int(after.split("-")[0]):
                yield f"{number}-0", event

    def tell(self, run_id: str, event: Trial | Progress) -> None:
        self.stream.setdefault(run_id, []).append(event)

    def attempts(self) -> list[tuple[str, int]]:
        """(case, attempt) of everything sent, in order."""
        return [(c.case_id, c.attempt) for batch, _ in self.sent for c in batch.cases]

    def _work(self) -> None:
        """Workers that live take their batches; a result is inserted once, as results.ResultSink does."""
        queued, self._queue = self._queue, []
        for batch in queued:
            device_id = batch.device_id or next((d for d in batch.only_on if d in self.workers), "")
            if device_id not in self.workers:
                self._queue.append(batch)
                continue
            known = {e.key for e in self.stream.get(batch.run_id, []) if isinstance(e, Trial)}
            for job in batch.cases:
                verdict = self.verdicts(job)
                if verdict is None:
                    continue
                made = trial_of(batch.run_id, device_id, job, verdict, batch.planned_for)
                if made.key not in known:
                    self.tell(batch.run_id, replace(made, duration_ms=self.took_ms(job)))


def trial_of(run_id: str, device_id: str, job: CaseJob, verdict: Verdict, planned_for: str = "") -> Trial:
    return Trial(
        planned_for=planned_for,
        run_id=run_id,
        device_id=device_id,
        case_id=job.case_id,
        attempt=job.attempt,
        verdict=verdict,
        reason="" if verdict is Verdict.PASS else str(verdict),
        code_hash=job.code_hash,
        started_at="2026-12-01T01:00:07Z",
        duration_ms=10,
    )


@dataclass(slots=True)
class Notes:
    """A watcher that writes down what it was told."""

    trials: list[Trial] = field(default_factory=list[Trial])
    news: list[Progress] = field(default_factory=list[Progress])
    losses: list[tuple[str, int, str]] = field(default_factory=list[tuple[str, int, str]])
    ticks: int = 0
    on_trial: Callable[[Trial], None] = field(default=lambda _trial: None)

    def trial(self, trial: Trial) -> None:
        self.on_trial(trial)
        self.trials.append(trial)

    def progress(self, news: Progress) -> None:
        self.news.append(news)

    def lost(self, target: str, cases: int, why: str) -> None:
        self.losses.append((target, cases, why))

    def tick(self) -> None:
        self.ticks += 1
        assert self.ticks < 10_000, "the dispatcher does not come to an end"
