"""What is said of each case on each SoC, and of each series, once the night's second measurements are in."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.speed.again import Again
from orchestrator.analysis.speed.analyse import Matrix, NightAnalysis
from orchestrator.analysis.speed.plan import Plan
from orchestrator.analysis.speed.pooled import PHONES
from orchestrator.analysis.speed.rows import Bools, Floats, Ints
from orchestrator.analysis.speed.rule import RULE, Rule


class Speed(StrEnum):
    REGRESSED = "regressed"
    IMPROVED = "improved"
    SAME = "same"
    """No change as large as the detectable one, with the rule's power."""
    INCONCLUSIVE = "inconclusive"
    NEW = "new"
    """Fewer accepted nights than a baseline needs."""
    MISSING = "missing"
    """It has a baseline and was not measured tonight."""


SPEEDS = tuple(Speed)
"""Codes in arrays are positions in this."""
_REGRESSED, _IMPROVED, _SAME, _INCONCLUSIVE, _NEW, _MISSING = range(len(SPEEDS))


@dataclass(frozen=True, slots=True)
class Turns:
    """Codes measured in turns (``confirm``), (series,) each."""

    asked: Bools
    answer: Ints
    """1 different, 0 unknown, −1 same."""
    effect: Floats
    """NaN where not asked."""

    @classmethod
    def none(cls, series: int) -> Self:
        return cls(np.zeros(series, np.bool_), np.zeros(series, np.int64), np.full(series, np.nan))


@dataclass(frozen=True, slots=True)
class Verdicts:
    tests: NDArray[np.int8]
    """(tests,) codes of ``SPEEDS``."""
    series: NDArray[np.int8]
    """(series,) codes; regressed and improved are items of one phone."""
    confirmed: Bools
    """(tests,) measured again, and found again."""
    confirmed_series: Bools
    not_the_code: Bools
    """(tests,) found, but the two codes measured in turns do not differ: the cause lies elsewhere."""


def verdicts(
    matrix: Matrix,
    night: NightAnalysis,
    measured: Bools,
    plan: Plan,
    turns: Turns,
    second: Again | None = None,
    rule: Rule = RULE,
) -> Verdicts:
    """``measured``: (series,) has samples tonight, whether or not they gave a number."""
    of, tests = matrix.test, matrix.tests
    way = np.sign(night.pooled.delta)
    different = turns.asked & (turns.answer == 1)
    along = different & (np.sign(turns.effect) == way[of])
    agreed = _count(of, along, tests)
    # A finding brings the agreement of two phones along; a suspect has to earn it.
    unopposed = _count(of, turns.asked & (turns.answer != 0) & ~along, tests) == 0
    agree = (agreed >= PHONES) | (night.screened.found & (agreed > 0) & unopposed)
    asked = _count(of, turns.asked, tests) > 0
    all_same = asked & (_count(of, turns.asked & (turns.answer != -1), tests) == 0)
    confirmed = plan.tests & (agree | (second.tests if second is not None else False))
    open_ = plan.tests & ~confirmed
    unpaid = night.screened.found & ~plan.tests

    series = _series(matrix, night, measured, plan, turns, second, confirmed, rule)
    known = _count(of, np.isfinite(night.deltas.delta), tests) > 0
    new = _count(of, measured & (night.deltas.nights < rule.min_nights), tests) > 0
    some = _count(of, measured, tests) > 0
    history = _count(of, night.deltas.nights > 0, tests) > 0
    moved = np.where(way > 0, _REGRESSED, _IMPROVED)
    undecided = open_ & (night.screened.found | ~all_same)
    code = np.select(
        [confirmed | unpaid, undecided, known, ~some & history, new],
        [moved, _INCONCLUSIVE, _SAME, _MISSING, _NEW],
        _INCONCLUSIVE,
    )
    # Every phone that can tell says it of itself only, or says it alone: nothing is known of the SoC.
    items = _count(of, (series == _REGRESSED) | (series == _IMPROVED), tests)
    code = np.where((code == _SAME) & (items > 0) & (night.pooled.phones <= items), _INCONCLUSIVE, code)
    return Verdicts(
        tests=code.astype(np.int8),
        series=series,
        confirmed=confirmed,
        confirmed_series=(series <= _IMPROVED) & plan.series,
        not_the_code=open_ & night.screened.found & all_same,
    )


def _series(
    matrix: Matrix,
    night: NightAnalysis,
    measured: Bools,
    plan: Plan,
    turns: Turns,
    second: Again | None,
    confirmed: Bools,
    rule: Rule,
) -> NDArray[np.int8]:
    delta = night.deltas.delta
    different = turns.asked & (turns.answer == 1) & (np.sign(turns.effect) == np.sign(delta))
    item = different & ~confirmed[matrix.test]
    if second is not None:
        item |= second.series & plan.series
    item |= night.phone.found & ~plan.series
    # Found and not found again, or a question that the last look left open.
    doubt = turns.asked & (turns.answer == 0)
    doubt |= night.phone.found & plan.series & ~item
    doubt &= ~confirmed[matrix.test]
    few = night.deltas.nights < rule.min_nights
    absent = ~measured & (night.deltas.nights > 0)
    return np.select(
        [
            item & (delta > 0),
            item,
            doubt & ~confirmed[matrix.test],
            np.isfinite(delta),
            absent,
            measured & few,
        ],
        [_REGRESSED, _IMPROVED, _INCONCLUSIVE, _SAME, _MISSING, _NEW],
        _INCONCLUSIVE,
    ).astype(np.int8)


def _count(of: Ints, flags: Bools, tests: int) -> Ints:
    return np.bincount(of[flags], minlength=tests).astype(np.int64)
