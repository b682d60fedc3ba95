"""Wilcoxon's signed-rank test on a few pairs, with the estimate and the limits that belong to it.

Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1(6), 1945; Hodges and Lehmann,
"Estimates of location based on rank tests", Annals of Mathematical Statistics 34(2), 1963. The p value is
SciPy's; the limits invert the same test, which SciPy does not do.
"""

from functools import cache

import numpy as np
from scipy.stats import wilcoxon

from orchestrator.analysis.speed.rows import Floats


def p_values(differences: Floats) -> Floats:
    """Two-sided p of each row of (rows, n) differences without NaN; 1 for a row of zeros.

    Exact where a row has neither ties nor zeros, as with times of a fine clock.
    """
    rows, n = len(differences), differences.shape[1]
    if n == 0:
        return np.ones(rows)
    size = np.sort(np.abs(differences), axis=1)
    plain = (size[:, 0] > 0) & np.all(np.diff(size, axis=1) > 0, axis=1)
    p = np.ones(rows)
    if plain.any():
        p[plain] = np.asarray(wilcoxon(differences[plain], axis=1, method="exact").pvalue, np.float64)
    for i in np.flatnonzero(~plain & (size[:, -1] > 0)):
        p[i] = float(wilcoxon(differences[i], zero_method="pratt", method="approx").pvalue)
    return p


def estimate_and_limits(differences: Floats, alpha: float) -> tuple[Floats, Floats, Floats]:
    """Hodges–Lehmann estimate of each row, with a lower and an upper limit that each err with ``alpha``.

    Limits are infinite where so few pairs allow none.
    """
    rows, n = len(differences), differences.shape[1]
    if n == 0:
        return np.full(rows, np.nan), np.full(rows, -np.inf), np.full(rows, np.inf)
    i, j = np.triu_indices(n)
    walsh = np.sort((differences[:, i] + differences[:, j]) / 2, axis=1)
    middle = np.median(walsh, axis=1)
    k = int(np.searchsorted(_cumulative(n), alpha, side="right"))  # P(W ≤ k − 1) ≤ alpha < P(W ≤ k)
    if k == 0:
        return middle, np.full(rows, -np.inf), np.full(rows, np.inf)
    return middle, walsh[:, k - 1], walsh[:, -k]


@cache
def _cumulative(n: int) -> Floats:
    """P(W ≤ w) for w = 0 … n(n+1)/2 when each rank is added with probability one half."""
    mass = np.ones(1)
    for rank in range(1, n + 1):
        longer = np.zeros(len(mass) + rank)
        longer[: len(mass)] += mass / 2
        longer[rank:] += mass / 2
        mass = longer
    return np.cumsum(mass)
