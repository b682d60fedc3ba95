"""A run's second look, carried out on the farm that is still open: questions in, ``Confirmation`` out.

Whatever fails here costs answers, each with its reason, and nothing of the run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.analysis.speed.rule import RULE
from orchestrator.domain.confirmation import Confirmation, Duel, Wanted
from orchestrator.domain.errors import TilefarmError
from orchestrator.domain.job import CaseJob
from orchestrator.domain.names import Lane
from orchestrator.domain.trial import Trial
from orchestrator.execution.duel_jobs import Codes, Manifests, canaries_of, codes_of, job_of
from orchestrator.execution.duel_samples import unanswered
from orchestrator.execution.duels import Meter, measure_in_turns
from orchestrator.execution.errands import Done, Errand, Errands
from orchestrator.planning.plan import BATCH_CASES

CONFIRM_LANE: Lane = "nightly"
"""Nobody waits at a terminal for a second look."""
CUT_OFF = "it was cut off before it was complete"


@dataclass(slots=True)
class Confirming:
    """The second look at one run.

    Args of ``carry_out`` are the questions; ``so_far`` is what is known at any moment, also when it is ended
    from outside.
    """

    run_id: str
    manifests: Manifests
    errands: Errands
    on_part: Callable[[Confirmation], object] = lambda part: None
    """Told of each answer, so that it outlives the process."""
    meter: Meter = field(default_factory=Meter)
    _duels: dict[tuple[str, str], Duel] = field(default_factory=dict[tuple[str, str], Duel])
    _again: list[Trial] = field(default_factory=list[Trial])
    _wanted: Sequence[Wanted] = ()
    _unpaid: int = 0

    def carry_out(self, wanted: Sequence[Wanted], samples: int, unpaid: int) -> Confirmation:
        """
        Args:
            wanted: the most important first.
            samples: of the whole night.
            unpaid: questions beyond the budget.
        """
        self._wanted, self._unpaid = wanted, unpaid
        self.meter.budget = RULE.samples_for_confirmation(samples)
        self.on_part(self.so_far(CUT_OFF))
        contests = [(w, codes) for w in wanted if w.how == "turns" and (codes := self._codes(w)) is not None]
        self.errands.run(self._once_more(), self._measured)
        for duel in measure_in_turns(contests, self.errands, self.meter, self._answered):
            self._duels[duel.wanted.device_id, duel.wanted.case_id] = duel
        done = self.so_far(self.errands.ended)
        self.on_part(done)
        return done

    def so_far(self, why: str) -> Confirmation:
        return Confirmation(
            run_id=self.run_id,
            duels=list(self._duels.values()),
            again=list(self._again),
            unpaid=self._unpaid,
            why=why,
            wanted=list(self._wanted),
            samples=self.meter.used,
        )

    def _codes(self, wanted: Wanted) -> Codes | None:
        try:
            return codes_of(wanted, self.run_id, self.manifests)
        except TilefarmError as e:
            self._answered(unanswered(wanted, str(e)))
            return None

    def _answered(self, duel: Duel) -> None:
        self._duels[duel.wanted.device_id, duel.wanted.case_id] = duel
        self.on_part(self.so_far(CUT_OFF))

    def _once_more(self) -> list[Errand]:
        """Cases that are measured again as they were, in batches of a device and an API."""
        groups: dict[tuple[str, str], list[CaseJob]] = {}
        for w in self._wanted:
            if w.how == "again":
                try:
                    job = job_of(self.manifests.of(self.run_id), w.device_id, w.case_id)
                except TilefarmError as e:
                    self._answered(unanswered(w, str(e)))
                    continue
                groups.setdefault((w.device_id, job.api), []).append(_timed_only(job))
        found: list[Errand] = []
        for (device_id, api), jobs in groups.items():
            manifest = self.manifests.of(self.run_id)
            canaries = [c for c in canaries_of(manifest, device_id) if c.job.api == api]
            for at in range(0, len(jobs), BATCH_CASES):
                found.append(Errand(device_id, manifest.blob_store, jobs[at : at + BATCH_CASES], canaries))
        return found

    def _measured(self, errand: Errand, done: Done) -> None:
        trials = list(done.trials.values())
        self.meter.used += sum(len(t.timing.samples_ns) for t in trials if t.timing is not None)
        self._again += trials
        if done.why:
            missed = [j.case_id for j in errand.jobs if j.case_id not in done.trials]
            for w in self._wanted:
                if w.how == "again" and w.device_id == errand.device_id and w.case_id in missed:
                    self._duels[w.device_id, w.case_id] = unanswered(w, done.why)
        self.on_part(self.so_far(CUT_OFF))


def _timed_only(job: CaseJob) -> CaseJob:
    """Its times are wanted, and its output once: replays were made in the run."""
    return replace(job, replays=1, idle_replays=0, idle_ms=0)
