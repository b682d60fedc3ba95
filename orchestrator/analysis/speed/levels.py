"""Levels of one series up to tonight: since when it is where it is. The weekly scan (``changepoint``) wants
three nights of a level; here the last one may be a single night, because tonight's test found it already.

Optimal partitioning (Jackson et al., IEEE Signal Processing Letters 12(2), 2005) with segment means.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from orchestrator.analysis.speed.rows import Bools, Floats

PENALTY, MARKED_PENALTY = 16.0, 9.0
"""Squared distances that a step must save: 4 standard deviations, and 3 in a night when code or software is
new, where a step is no surprise."""


@dataclass(frozen=True, slots=True)
class Step:
    night: int
    """The first at the new level."""
    before: float
    after: float

    @property
    def size(self) -> float:
        return self.after - self.before


def steps(values: Floats, sd: float, marked: Bools) -> list[Step]:
    """
    Args:
        values: (nights,) log times, the common shift taken off; NaN for no number.
        sd: of one night around its level.
        marked: (nights,) code or software is another one than in the night before.
    """
    known = np.flatnonzero(np.isfinite(values))
    if len(known) < 2 or not sd > 0:
        return []
    scaled = (values[known] - values[known[0]]) / sd
    sums = np.concatenate([[0.0], np.cumsum(scaled)])
    squares = np.concatenate([[0.0], np.cumsum(scaled * scaled)])
    # A mark between two numbers is one: the night itself may have none.
    marks = np.concatenate([[0], np.cumsum(marked)])
    new = np.diff(marks[known + 1], prepend=marks[known[0] + 1]) > 0
    price = np.where(new, MARKED_PENALTY, PENALTY)
    price[0] = 0.0
    total = len(known)
    best, starts = np.zeros(total + 1), np.zeros(total + 1, np.int64)
    for end in range(1, total + 1):
        n = end - np.arange(end)
        inside = squares[end] - squares[:end] - (sums[end] - sums[:end]) ** 2 / n
        cost = best[:end] + inside + price[:end]
        starts[end] = int(cost.argmin())
        best[end] = cost[starts[end]]
    bounds = [total]
    while bounds[-1] > 0:
        bounds.append(int(starts[bounds[-1]]))
    bounds.reverse()
    means = [float(values[known[a:b]].mean()) for a, b in pairwise(bounds)]
    return [Step(int(known[at]), means[n], means[n + 1]) for n, at in enumerate(bounds[1:-1])]
