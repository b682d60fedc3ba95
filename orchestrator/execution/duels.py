"""Duels: looks at two codes measured in turns, more of them only while the answer is open and affordable."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from orchestrator.analysis.speed.confirm import LOOKS
from orchestrator.analysis.speed.discovery import affordable
from orchestrator.domain.confirmation import Duel, Wanted
from orchestrator.domain.trial import Trial
from orchestrator.execution.duel_jobs import Codes, entries, entry_id
from orchestrator.execution.duel_samples import duel_of, unanswered
from orchestrator.execution.errands import Done, Errand, Errands

UNTIMED = 0.5
"""Of a look's samples: with more of them gone there is nothing to decide with."""


@dataclass(slots=True)
class Meter:
    """Timed samples that may be taken, and those that were."""

    budget: float = inf
    used: int = 0

    @property
    def left(self) -> float:
        return self.budget - self.used


@dataclass(slots=True, eq=False)
class _Contest:
    wanted: Wanted
    codes: Codes
    trials: list[Trial | None] = field(default_factory=list[Trial | None])
    duel: Duel | None = None

    @property
    def open(self) -> bool:
        return self.duel is None or (self.duel.answer == "unknown" and not self.duel.why)


def measure_in_turns(
    asked: Sequence[tuple[Wanted, Codes]],
    errands: Errands,
    meter: Meter,
    on_duel: Callable[[Duel], None],
    *,
    repeats: int = 1,
) -> list[Duel]:
    """One duel for each question, in the order asked.

    Args:
        on_duel: told of each as it stands after a look.
        repeats: times that one sample is the median of: more of them make it calmer, and cost more.
    """
    contests = [_Contest(wanted, codes) for wanted, codes in asked]
    before = 0
    for number, look in enumerate(LOOKS):
        end = 2 * look.pairs
        # Who missed a look for want of budget has none of the later ones: their pairs would not be whole.
        able = [c for c in contests if len(c.trials) == before]
        chosen = _affordable(able, (end - before) * repeats, inf if number == 0 else meter.left)
        if not chosen or errands.ended:
            break
        of = {_errand(contest, before, end, repeats): contest for contest in chosen}
        errands.run(list(of), _Settling(of, before, end, meter, on_duel))
        before = end
    return [c.duel or unanswered(c.wanted, errands.ended or "nobody measured it") for c in contests]


@dataclass(frozen=True, slots=True)
class _Settling:
    """What becomes of the batches of one look."""

    of: Mapping[Errand, _Contest]
    first: int
    end: int
    meter: Meter
    on_duel: Callable[[Duel], None]

    def __call__(self, errand: Errand, done: Done) -> None:
        contest = self.of[errand]
        self.meter.used += sum(len(t.timing.wall_ns) for t in done.trials.values() if t.timing is not None)
        contest.duel = _looked(contest, done, self.first, self.end)
        self.on_duel(contest.duel)


def _affordable(contests: Sequence[_Contest], cost: int, budget: float) -> list[_Contest]:
    """Those that are open, the least likely by chance first."""
    open_ = np.array([c.open for c in contests], np.bool_)
    p = np.array([c.wanted.p for c in contests], np.float64)
    chosen = affordable(np.nan_to_num(p, nan=1.0), open_, np.full(len(contests), float(cost)), budget)
    return [contests[n] for n in np.flatnonzero(chosen)[np.argsort(p[chosen], kind="stable")].tolist()]


def _errand(contest: _Contest, first: int, end: int, repeats: int) -> Errand:
    codes = contest.codes
    jobs = entries(codes, first, end, repeats)
    return Errand(contest.wanted.device_id, codes.blob_store, jobs, codes.canaries)


def _looked(contest: _Contest, done: Done, first: int, end: int) -> Duel:
    """With a further look's trials. A look that came to nothing leaves what was known before."""
    sides = (contest.codes.before.case_id, contest.codes.after.case_id)
    ids = [entry_id(sides[place % 4 in (1, 2)], place) for place in range(first, end)]
    found = [done.trials.get(case_id) for case_id in ids]
    timed = sum(t is not None and t.timing is not None for t in found)
    why = done.why
    if timed <= UNTIMED * len(found) and not why:
        why = next((t.reason for t in found if t is not None and t.timing is None), "") or "it was not timed"
    if why:
        before = contest.duel
        if before is None:
            return unanswered(contest.wanted, why)
        return duel_of(contest.wanted, contest.trials, why)
    contest.trials += found
    return duel_of(contest.wanted, contest.trials)
