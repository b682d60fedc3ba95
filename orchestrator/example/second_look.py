"""The example's second look: what measuring again would have said, with noise of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.analysis.speed.confirm import LOOKS
from orchestrator.analysis.speed.rule import RULE
from orchestrator.domain.confirmation import Confirmation, Duel, Wanted
from orchestrator.domain.results import CaseInfo, RunResults
from orchestrator.domain.trial import Sensors, Timing, Trial
from orchestrator.example.month import Month, code_hash, number_of, phones_of
from orchestrator.example.truth import code_factor, code_version
from orchestrator.execution.duel_samples import duel_of

LATE = 1.0
"""Of the night: all else was measured before."""


@dataclass(slots=True)
class SecondLook:
    """Of one night; called with its questions (``verdicts.confirming``)."""

    month: Month
    results: RunResults
    used: int = 0
    """Samples."""

    def __call__(self, wanted: Sequence[Wanted], samples: int, unpaid: int) -> Confirmation:
        again = [self._again(w) for w in wanted if w.how == "again"]
        self.used += sum(len(t.timing.samples_ns) for t in again if t.timing is not None)
        budget = RULE.budget * samples
        return Confirmation(
            run_id=self.results.run.run_id,
            duels=[self._duel(w, budget) for w in wanted if w.how == "turns"],
            again=again,
            unpaid=unpaid,
            wanted=list(wanted),
            samples=self.used,
        )

    @property
    def _night(self) -> int:
        return number_of(self.results.run.run_id)

    def _trial(self, wanted: Wanted) -> Trial:
        asked = (wanted.device_id, wanted.case_id)
        return next(t for t in self.results.trials if (t.device_id, t.case_id) == asked)

    def _timed(self, word: str, wanted: Wanted, count: int) -> tuple[Timing, Sensors]:
        phone = next(p for p in phones_of(self._night) if p.device_id == wanted.device_id)
        info = self._info(wanted)
        sky = self.month.sky(self._night, phone)
        return self.month.timed(word, self._night, phone, info, sky, LATE, count)

    def _info(self, wanted: Wanted) -> CaseInfo:
        return self.results.cases[wanted.case_id]

    def _again(self, wanted: Wanted) -> Trial:
        first = self._trial(wanted)
        count = len(first.timing.samples_ns) if first.timing is not None else 0
        timing, sensors = self._timed("again", wanted, count)
        return replace(first, timing=timing, sensors=sensors)

    def _duel(self, wanted: Wanted, budget: float) -> Duel:
        """A B B A …, B being tonight's code; more looks while it is open and paid for."""
        case, total = self._info(wanted).case, 2 * LOOKS[-1].pairs
        timing, sensors = self._timed("turns", wanted, total)
        tonight = code_version(case, self._night)
        before = next(v for v in range(tonight + 1) if code_hash(case, v) == wanted.code_before)
        ratio = code_factor(case, before) / code_factor(case, tonight)
        first = self._trial(wanted)
        found: Duel | None = None
        trials: list[Trial | None] = []
        for look in LOOKS:
            more = 2 * look.pairs - len(trials)
            if found is not None and (found.answer != "unknown" or self.used + more > budget):
                break
            trials += [
                _one(first, timing, sensors, place, 1.0 if place % 4 in (1, 2) else ratio)
                for place in range(len(trials), 2 * look.pairs)
            ]
            self.used += more
            found = duel_of(wanted, trials)
        return found if found is not None else duel_of(wanted, trials, "nobody measured it")


def _one(trial: Trial, timing: Timing, sensors: Sensors, place: int, ratio: float) -> Trial:
    """The trial of one sample."""
    gpu_ns, wall_ns = (round(times[place] * ratio) for times in (timing.gpu_ns, timing.wall_ns))
    one = replace(timing, gpu_ns=[gpu_ns], wall_ns=[wall_ns])
    around = replace(
        sensors, gpu_hz=sensors.gpu_hz[place : place + 2], temp_mc=sensors.temp_mc[place : place + 2]
    )
    return replace(trial, timing=one, sensors=around, outputs=[])
