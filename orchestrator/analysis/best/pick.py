"""The variant to ship out of those that passed: the fastest, or of those that are tied with it the one with
the smaller error, then the simpler one."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isnan, prod
from re import findall

import numpy as np

from orchestrator.analysis.best.levels import Levels
from orchestrator.analysis.best.margins import Margins, margins
from orchestrator.analysis.speed.rows import Floats
from orchestrator.domain.case import Axes, AxisValue

NEAR = float(np.log(1.02))
"""A loss that does not matter, and the most that a tie may cost: noisy nights tie variants that differ."""

ALIKE = 2.0
"""NMSE of one variant over another's, up to which their errors are alike."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What decides between variants that are tied."""

    case_id: str
    nmse: float
    axes: Axes

    @property
    def error(self) -> float:
        """Unknown is the worst."""
        return inf if isnan(self.nmse) else self.nmse

    @property
    def size(self) -> int:
        """Product of the tile's extents and of other small whole numbers: memory and registers that it takes.
        The smaller one runs on more phones."""
        return prod(self.size_of(axis) for axis in self.axes)

    def size_of(self, axis: str) -> int:
        """1 of an axis that is no size, or that it does not have."""
        return prod(max(1, n) for n in _extents(self.axes.get(axis, "")))


@dataclass(frozen=True, slots=True)
class Picked:
    """Indices of variants."""

    pick: int
    fastest: int
    tied: tuple[int, ...]
    """With the fastest, itself included, the pick left out; empty: no tie."""
    why: str
    against: Margins
    """All others against the pick."""
    runner_up: int | None
    """The fastest of all others."""


def choose(log_ns: Floats, found: Levels, candidates: Sequence[Candidate], among: Sequence[int]) -> Picked:
    """
    Args:
        log_ns: (variants, phones, nights)
        among: variants to choose from; each has a score.
    """
    by_score = sorted(among, key=lambda v: (float(found.score[v]), candidates[v].case_id))
    fastest = by_score[0]
    against = margins(log_ns, found.used, fastest)
    same = against.holds_zero & (found.score - found.score[fastest] <= NEAR)
    level = [v for v in by_score if same[v] or v == fastest]
    least = min(candidates[v].error for v in level)
    exact = [v for v in level if candidates[v].error <= ALIKE * least]
    pick = min(exact, key=lambda v: (candidates[v].size, float(found.score[v]), candidates[v].case_id))
    if pick != fastest:
        against = margins(log_ns, found.used, pick)
    others = [v for v in by_score if v != pick]
    return Picked(
        pick=pick,
        fastest=fastest,
        tied=tuple(v for v in level if v != pick),
        why=_why(candidates, pick, fastest, exact) if len(level) > 1 else "",
        against=against,
        runner_up=others[0] if others else None,
    )


def _why(candidates: Sequence[Candidate], pick: int, fastest: int, exact: Sequence[int]) -> str:
    """``exact``: those whose errors are alike, and the smallest."""
    if pick == fastest:
        return "the fastest of them, and none has a smaller error or is simpler"
    if fastest not in exact:
        return "its error is smaller"
    axes = dict.fromkeys(axis for v in exact for axis in candidates[v].axes)
    sizes = [axis for axis in axes if len({candidates[v].size_of(axis) for v in exact}) > 1]
    return f"errors are alike, and its {' × '.join(sizes)} is the smallest"


def _extents(value: AxisValue) -> list[int]:
    if isinstance(value, bool):
        return []
    if isinstance(value, int):
        return [value]
    return [int(n) for n in findall(r"\d{1,6}", value)] if value[:1].isdigit() else []
