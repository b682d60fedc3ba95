"""Two modes in a trial's times, for many trials at once: ``analysis.clocks.split``, row by row in numpy.

Here times are logarithms, so that a step is a ratio and a unit changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from orchestrator.analysis.clocks import MIN_CLEARANCE, MIN_SHARE, MIN_STEP
from orchestrator.analysis.speed import rows
from orchestrator.analysis.speed.rows import Bools, Floats, Ints

_FEW = 5
"""Below as many samples the spread of a mode is its range: quartiles would hide most of it."""


@dataclass(frozen=True, slots=True)
class Modes:
    """One entry a row: (rows,) each. Counts are 0 and times NaN where there is one mode."""

    found: Bools
    cut: Floats
    """Largest log time of the faster mode."""
    fast: Floats
    """Mean log time."""
    slow: Floats
    fast_n: Ints
    slow_n: Ints

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        return cls(
            found=np.concatenate([p.found for p in parts]),
            cut=np.concatenate([p.cut for p in parts]),
            fast=np.concatenate([p.fast for p in parts]),
            slow=np.concatenate([p.slow for p in parts]),
            fast_n=np.concatenate([p.fast_n for p in parts]),
            slow_n=np.concatenate([p.slow_n for p in parts]),
        )


def modes_of(times: Floats) -> Modes:
    """``times``: (rows, n) log times, NaN absent. The largest gap between sorted times splits a row, if both
    sides hold a share, lie a step apart, and the gap is wide beside the spread inside them."""
    ranked, count = rows.ordered(times)
    total, width = len(ranked), times.shape[1]
    least = np.maximum(2, -(-count // round(1 / MIN_SHARE)))
    if width < 2:
        none, zero = np.full(total, np.nan), np.zeros(total, np.int64)
        return Modes(np.zeros(total, np.bool_), none, none, none, zero, zero)
    at = rows.indices(width - 1) + 1
    allowed = (at >= least[:, None]) & (at <= (count - least)[:, None])
    gaps = np.where(allowed, np.diff(ranked, axis=1), -1.0)
    gap = gaps.max(axis=1)
    cut = (gaps.argmax(axis=1) + 1).astype(np.int64)
    cut = np.where(gap < 0, 0, cut)
    inside = rows.indices(width)
    in_fast = inside < cut[:, None]
    in_slow = ~in_fast & (inside < count[:, None])
    fast = _mean(ranked, in_fast)
    slow = _mean(ranked, in_slow)
    spread = np.maximum(_spread(ranked, np.zeros_like(cut), cut), _spread(ranked, cut, count - cut))
    found = (gap > 0) & (slow - fast >= np.log1p(MIN_STEP)) & (gap > MIN_CLEARANCE * spread)
    edge = ranked[rows.indices(total), np.maximum(cut - 1, 0)]
    return Modes(
        found=found,
        cut=np.where(found, edge, np.nan),
        fast=np.where(found, fast, np.nan),
        slow=np.where(found, slow, np.nan),
        fast_n=np.where(found, cut, 0),
        slow_n=np.where(found, count - cut, 0),
    )


def _mean(ranked: Floats, mask: Bools) -> Floats:
    return np.where(mask, ranked, 0.0).sum(axis=1) / np.maximum(np.count_nonzero(mask, axis=1), 1)


def _spread(ranked: Floats, low: Ints, count: Ints) -> Floats:
    few = count < _FEW
    wide = rows.quantile(ranked, low, count, 1.0) - rows.quantile(ranked, low, count, 0.0)
    middle = rows.quantile(ranked, low, count, 0.75) - rows.quantile(ranked, low, count, 0.25)
    return np.where(few, wide, middle)
