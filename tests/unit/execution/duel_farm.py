"""A farm in memory whose workers time what they are given."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from orchestrator.domain.event import Progress
from orchestrator.domain.job import Batch, BufferJob, CanaryJob, CaseJob, PassJob
from orchestrator.domain.names import Lane
from orchestrator.domain.trial import GpuTimer, Sensors, Timing, Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.errands import ErrandLimits, Errands
from tests.unit.execution.fake_farm import FakeFarm, trial_of

RUN = "20261201T010000Z-nightly-aaaa"
SHADERS = {"old": "a" * 64, "new": "b" * 64}


def job(case_id: str = "5d41402abc4b2a76", code: str = "old", **changes: object) -> CaseJob:
    made = CaseJob(
        case_id=case_id,
        attempt=1,
        label=f"scale {code}",
        api="gles",
        code_hash=code,
        buffers=[BufferJob("x", "in", "f32", 4, "c" * 64), BufferJob("y", "out", "f32", 4)],
        passes=[PassJob(SHADERS.get(code, "d" * 64), (1, 1, 1), 0, ("x", "y"))],
        checks=[],
        warmup=2,
        warmup_ms=400,
        repeats=20,
        replays=12,
        idle_replays=1,
        idle_ms=500,
    )
    return replace(made, **changes)


def canary(api: str = "gles") -> CanaryJob:
    return CanaryJob(job("canary", "can", api=api), 4.0)


def timing(ns: int, timer: GpuTimer = "trusted", repeats: int = 1) -> Timing:
    return Timing([1000], ns, [ns + 50_000] * repeats, [ns] * repeats if timer != "absent" else [], timer)


Answer = Callable[[CaseJob], Trial | None]


@dataclass(slots=True)
class DuelFarm(FakeFarm):
    """``answer`` gives a worker's trial of a job; None: it is never heard of."""

    answer: Answer | None = None
    called_back: dict[str, str] = field(default_factory=dict[str, str])
    waiting: list[Batch] = field(default_factory=list[Batch])
    busy: bool = False
    """Others have all devices."""

    def send(self, batch: Batch, lane: Lane) -> None:
        self.epoch()
        self.sent.append((batch, lane))
        self.waiting.append(batch)

    def cancel(self, run_id: str, why: str) -> bool:
        self.epoch()
        self.called_back[run_id] = why
        return True

    def _work(self) -> None:
        queued, self.waiting = self.waiting, []
        for batch in queued:
            if self.busy or batch.device_id not in self.workers:
                self.waiting.append(batch)
                continue
            self.tell(batch.run_id, Progress(batch.device_id, "batch", detail=batch.batch_id))
            for each in batch.cases:
                made = self.answer(each) if self.answer else timed(each, 1_000_000)
                if made is not None:
                    self.tell(batch.run_id, replace(made, run_id=batch.run_id, device_id=batch.device_id))

    def errands(self, limits: ErrandLimits | None = None) -> Errands:
        return Errands(self, RUN, "nightly", limits=limits, now=self.now, sleep=self.sleep)


def timed(
    each: CaseJob, ns: int, timer: GpuTimer = "trusted", *, hz: int = 900_000_000, throttled: bool = False
) -> Trial:
    n = each.repeats
    return replace(
        trial_of(RUN, "phone", each, Verdict.PASS),
        timing=timing(ns, timer, n),
        sensors=Sensors([hz] * (n + 1), [30_000] * (n + 1), throttled),
    )


def failed(each: CaseJob, verdict: Verdict, reason: str) -> Trial:
    return replace(trial_of(RUN, "phone", each, verdict), reason=reason)
