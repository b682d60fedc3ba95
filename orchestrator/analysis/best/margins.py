"""How much slower every other variant is than one of them, from pairs measured in one phone's night.

The estimate is that of the phone in the middle, so that one odd phone moves nothing. Its interval is
Student's, with the scatter of the nights around each phone's own mean; what phones disagree about is told by
the worst phone, not hidden in an interval of an average that no phone has.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from orchestrator.analysis.best.levels import middle
from orchestrator.analysis.speed.rows import Bools, Floats, Ints

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Margins:
    """One entry a variant: (variants,) each, log ratios to the reference; its own is 0."""

    estimate: Floats
    """NaN: never measured beside it."""
    low: Floats
    """NaN like ``high``: no phone has two nights, so nothing is known of its scatter."""
    high: Floats
    worst: Floats
    """Of the phone where it is smallest."""
    pairs: Ints

    @property
    def holds_zero(self) -> Bools:
        """(variants,) Cannot be told from the reference."""
        return (self.low <= 0) & (self.high >= 0)


def margins(log_ns: Floats, used: Bools, reference: int) -> Margins:
    """
    Args:
        log_ns: (variants, phones, nights)
        used: cells that count.
        reference: index of the variant that the others are held against.
    """
    known = np.where(used, log_ns, np.nan)
    ratio = known - known[reference]
    there = ~np.isnan(ratio)
    n = there.sum(axis=2)  # (variants, phones)
    filled = np.where(there, ratio, 0.0)
    mean = np.where(n > 0, filled.sum(axis=2) / np.maximum(n, 1), np.nan)
    off = np.where(there, ratio - mean[:, :, None], 0.0)
    pairs, phones = n.sum(axis=1), (n > 0).sum(axis=1)
    df = pairs - phones
    variance = (off * off).sum(axis=(1, 2)) / np.maximum(df, 1)
    estimate = middle(mean)
    reach = _t(df) * np.sqrt(variance * _middle_weight(mean, n))
    reach = np.where(df > 0, reach, np.nan)
    reach[reference] = 0.0
    worst = np.where(phones > 0, np.where(np.isnan(mean), np.inf, mean).min(axis=1), np.nan)
    return Margins(estimate, estimate - reach, estimate + reach, worst, pairs)


def _middle_weight(mean: Floats, n: Ints) -> Floats:
    """Variance of the middle phone's mean (of two: of their mean), in units of one night's."""
    order = np.argsort(mean, axis=1)  # NaN last
    count = (n > 0).sum(axis=1)
    weight = np.where(n > 0, 1 / np.maximum(n, 1), 0.0)
    row = np.arange(len(mean))
    low = weight[row, order[row, np.maximum(count - 1, 0) // 2]]
    high = weight[row, order[row, np.minimum(count // 2, mean.shape[1] - 1)]]
    return np.where(count % 2 == 1, low, (low + high) / 4)


def _t(df: Ints) -> Floats:
    return np.asarray(stdtrit(np.maximum(df, 1).astype(np.float64), (1 + CONFIDENCE) / 2), np.float64)
