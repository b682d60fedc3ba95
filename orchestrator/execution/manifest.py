"""What a run is to do: its jobs by target, and what is not prepared yet."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.job import CanaryJob, CaseJob
from orchestrator.domain.names import Lane, soc_slug
from orchestrator.domain.results import CaseInfo, Pruned, RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.matrix import Sampling


@dataclass(frozen=True, slots=True)
class Pool:
    """Phones of one SoC that stand in for each other, and cases that the first free one of them does."""

    soc: str
    devices: list[str]
    jobs: list[CaseJob]
    canaries: list[CanaryJob] = field(default_factory=list[CanaryJob])


@dataclass(frozen=True, slots=True)
class Unprepared:
    """A planned case of a target whose shaders and references are not made yet."""

    case_id: str
    estimate_ms: int
    software: bool
    """Its device's driver runs on its host's processor, whose clock no idle GPU lets fall: no warm-up by
    time there."""
    sampling: Sampling

    def job(self, prepared: CaseJob) -> CaseJob:
        """The job as this target does it."""
        warmup_ms = 0 if self.software else prepared.warmup_ms
        return replace(prepared, estimate_ms=self.estimate_ms, warmup_ms=warmup_ms)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case when it was prepared: a job, or why there is none."""

    case_id: str
    info: CaseInfo | None = None
    job: CaseJob | None = None
    refused: str = ""
    """What the host's compiler said: failed on each of its devices."""
    degenerate: str = ""
    """Why its reference has no signal: no device can run it."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was planned: results without trials, and the jobs of each device."""

    planned: RunResults
    jobs: dict[str, list[CaseJob]]
    """device_id → jobs in the order they are dispatched, attempt 1."""
    blob_store: str
    lane: Lane
    canaries: dict[str, list[CanaryJob]] = field(default_factory=dict[str, list[CanaryJob]])
    """device_id → at most one an API; a resumed run is vouched for by the same ones."""
    pools: dict[str, Pool] = field(default_factory=dict[str, Pool])
    """By an id that is no device's (``pool_id``)."""
    able: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Phone → cases that it may do where infrastructure keeps another one of its SoC from doing them."""
    reserve: list[DeviceRecord] = field(default_factory=list[DeviceRecord])
    """Phones of ``able`` that nothing was planned for."""
    user: str = ""
    """Who asked for the run, for a fair share of the devices."""
    unprepared: dict[str, list[Unprepared]] = field(default_factory=dict[str, list[Unprepared]])
    """Target → what has no job yet; its devices work on the others meanwhile."""
    kernels_digest: str = ""
    """Of the kernels' files: what is unprepared can be prepared later only from the same ones."""

    @property
    def wanted(self) -> dict[str, list[CaseJob]]:
        """Target (device or pool) → its jobs."""
        return self.jobs | {target: pool.jobs for target, pool in self.pools.items()}

    def device_of(self, target: str) -> str:
        """A device to which the report attributes what is missing of a target."""
        pool = self.pools.get(target)
        return pool.devices[0] if pool else target

    def with_outcomes(self, outcomes: Iterable[Outcome]) -> "Manifest":
        """The same run with these cases prepared; one that was prepared before stays as it is."""
        known = {outcome.case_id: outcome for outcome in outcomes}
        left = {t: [u for u in waiting if u.case_id not in known] for t, waiting in self.unprepared.items()}
        jobs = {target: list(found) for target, found in self.wanted.items()}
        pruned = list(self.planned.pruned)
        for target, waiting in self.unprepared.items():
            for each in waiting:
                outcome = known.get(each.case_id)
                if outcome is not None and outcome.job is not None:
                    jobs[target].append(each.job(outcome.job))
                elif outcome is not None and outcome.degenerate:
                    device = self.device_of(target)
                    pruned.append(Pruned(device, each.case_id, Verdict.INVALID, [outcome.degenerate]))
        infos = {i: outcome.info for i, outcome in known.items() if outcome.info is not None}
        return replace(
            self,
            planned=replace(self.planned, cases=self.planned.cases | infos, pruned=pruned),
            jobs={target: jobs[target] for target in self.jobs},
            pools={target: replace(pool, jobs=jobs[target]) for target, pool in self.pools.items()},
            unprepared={target: waiting for target, waiting in left.items() if waiting},
        )

    def refused(self, outcomes: Iterable[Outcome], now: str) -> Iterator[Trial]:
        """Trials of cases that no device sees because their shader does not compile here.

        No driver saw them, so ``driver`` stays empty and expectations are matched against the device's own.
        """
        waiting = {t: {u.case_id for u in unprepared} for t, unprepared in self.unprepared.items()}
        for outcome in outcomes:
            if not outcome.refused or outcome.info is None:
                continue
            for target in [t for t, cases in waiting.items() if outcome.case_id in cases]:
                yield Trial(
                    run_id=self.planned.run.run_id,
                    device_id=self.device_of(target),
                    case_id=outcome.case_id,
                    attempt=1,
                    verdict=Verdict.COMPILE_FAILED,
                    reason=outcome.refused.partition("\n")[0],
                    code_hash=outcome.info.code_hash,
                    started_at=now,
                    duration_ms=0,
                    log=outcome.refused,
                )


def pool_id(number: int, soc: str) -> str:
    """``number``: of the pool in its run, since phones of one SoC may differ in what they can run."""
    return f"pool{number}-{soc_slug(soc)}"


def cases_of(unprepared: Mapping[str, list[Unprepared]]) -> list[str]:
    """Ids of what is unprepared, each once: first the first of each target, so that all have work early."""
    longest = max((len(waiting) for waiting in unprepared.values()), default=0)
    turns = (waiting[n].case_id for n in range(longest) for waiting in unprepared.values() if waiting[n:])
    return list(dict.fromkeys(turns))
