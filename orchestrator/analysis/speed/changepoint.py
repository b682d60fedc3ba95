"""Levels of a series over a season: where it moved, however slowly, in steps of at least three nights.

Optimal partitioning (Jackson et al., "An algorithm for optimal partitioning of data on an interval", IEEE
Signal Processing Letters 12(2), 2005), the exact search that PELT prunes (Killick, Fearnhead and Eckley,
JASA 107, 2012). Here all series take each step of the recursion together, in numpy: over 90 nights pruning
row by row would save less than it costs.

Cost: squared distance from a segment's mean in units of the series' own noise. Penalty of a change:
``penalty``. Nights without a number are closed up; positions count all nights.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from orchestrator.analysis.speed import rows
from orchestrator.analysis.speed.rows import Floats, Ints
from orchestrator.analysis.speed.rule import RULE, Rule

_CHUNK = 1_000
"""Series at a time: what a step touches then stays in the processor's cache."""


DIFFERENCE_WORTH = 0.5
"""Degrees of freedom a night. Simulated: at 0.5 a series of 20, 45 or 90 nights without change shows one with
probability 0.0004, 0.0006, 0.0002; at 1.0 with 0.004, 0.002, 0.0008."""


@dataclass(frozen=True, slots=True)
class Segment:
    first: int
    """Night of the matrix, from 0."""
    last: int
    nights: int
    """With a number."""
    level: float
    """Mean log time."""


def penalty(nights: Ints, rule: Rule = RULE) -> Floats:
    """Gain in cost that a change must bring, so that a series without one shows one with ``scan_alpha``.

    A single split at a given night gains z² with z standard normal where nothing changed. Some of the n
    nights does with at most n times the probability (Bonferroni); and z has the heavier tails of Student's t,
    because the noise is estimated from the series, with as many degrees of freedom as its median absolute
    difference is worth (``DIFFERENCE_WORTH`` of the nights).
    """
    n = np.maximum(nights, 2).astype(np.float64)
    df = np.maximum(DIFFERENCE_WORTH * n, 1.0)
    z = special.stdtrit(df, 1 - rule.scan_alpha / (2 * n))
    return z * z


def segments(values: Floats, rule: Rule = RULE) -> list[list[Segment]]:
    """``values``: (series, nights) log times, the common shift taken off, oldest first, NaN for no number.

    Of each series its segments in order: one where nothing changed, none without a number.
    """
    found: list[list[Segment]] = []
    for at in range(0, len(values), _CHUNK):
        found += _segments(values[at : at + _CHUNK], rule)
    return found


def noise(packed: Floats) -> Floats:
    """Night-to-night sd of rows without steps: from differences of neighbours, so that steps do not count."""
    return 1.4826 * rows.median(np.abs(np.diff(packed, axis=1))) / np.sqrt(2)


def _segments(values: Floats, rule: Rule) -> list[list[Segment]]:
    known = ~np.isnan(values)
    count = np.count_nonzero(known, axis=1).astype(np.int64)
    order = np.argsort(~known, axis=1, kind="stable")  # numbers first, in order
    packed = np.take_along_axis(values, order, axis=1)
    starts = _starts(packed, count, penalty(count, rule), rule.min_segment)
    found: list[list[Segment]] = []
    for row in np.arange(len(values)).tolist():
        here: list[Segment] = []
        end = int(count[row])
        while end > 0:
            first = int(starts[row, end])
            level = float(packed[row, first:end].mean())
            here.append(Segment(int(order[row, first]), int(order[row, end - 1]), end - first, level))
            end = first
        found.append(here[::-1])
    return found


def _starts(packed: Floats, count: Ints, gain: Floats, least: int) -> Ints:
    """(series, nights + 1): where the last segment of the best partition of the first t numbers begins.

    Inside, nights come first: the recursion then runs along memory. The squares of a segment's numbers are
    the same in every partition and are left out of its cost.
    """
    total, nights = len(packed), packed.shape[1]
    sd = noise(packed)
    usable = sd > 0
    scaled = (packed - rows.median(packed)[:, None]) / np.where(usable, sd, 1.0)[:, None]
    scaled = np.where(np.isnan(scaled) | ~usable[:, None], 0.0, scaled).T
    sums = np.concatenate([np.zeros((1, total)), np.cumsum(scaled, axis=0)])
    best = np.full((nights + 1, total), np.inf)
    best[0] = -gain
    starts = np.zeros((nights + 1, total), np.int64)
    for t in range(1, nights + 1):
        firsts = max(t - least + 1, 1) if t >= 2 * least else 1  # else no room for two segments
        inside = sums[t] - sums[:firsts]
        inside *= inside
        inside /= (t - rows.indices(firsts))[:, None]
        np.subtract(best[:firsts], inside, out=inside)
        at = inside.argmin(axis=0)
        best[t] = inside[at, rows.indices(total)] + gain
        starts[t] = at
    return starts.T
