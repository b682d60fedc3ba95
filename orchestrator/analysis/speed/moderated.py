"""Variances of many series, each shrunk towards what is usual on its phone, and the t statistic with them.

Smyth, "Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments", Statistical Applications in Genetics and Molecular Biology 3(1), 2004, sections 3 and 6.2: the
variances of a phone's series are draws from a scaled inverse χ² with d₀ degrees of freedom around s₀², both
fitted to the logarithms of the sample variances. A series of 7 nights borrows what its neighbours know.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from orchestrator.analysis.speed import rows
from orchestrator.analysis.speed.rows import Floats, Ints
from orchestrator.analysis.speed.rule import RULE, Rule

_MIN_SERIES = 20
"""Fewer on a phone say too little about d₀: it takes the prior of all phones of the night."""
_TINY = 1e-5
"""Of the group's median variance: the smallest that is believed. Quantised timers give zeros."""


@dataclass(frozen=True, slots=True)
class Prior:
    """One entry a group: (groups,) each."""

    d0: Floats
    """Infinite where variances differ by no more than chance."""
    s0_sq: Floats


@dataclass(frozen=True, slots=True)
class Deltas:
    """Tonight against the baseline of the same phone, one entry a series: (series,) each."""

    delta: Floats
    """Log ratio; NaN where either side is missing or the baseline too short."""
    se: Floats
    df: Floats
    p: Floats
    """Two-sided."""
    nights: Ints
    """In the baseline."""

    @property
    def t(self) -> Floats:
        return self.delta / self.se


def deltas(baseline: Floats, tonight: Floats, group: Ints, groups: int, rule: Rule = RULE) -> Deltas:
    """``baseline``: (series, nights), NaN for nights that do not count; ``tonight``: (series,). Both with the
    common shift taken off. ``group``: (series,) whose variances are alike, i.e. the device."""
    mean, variance, nights = rows.mean_and_variance(baseline)
    long = nights >= rule.min_nights
    df = np.where(long, nights - 1.0, np.nan)
    known = long & (variance >= 0)
    prior = fit_prior(variance[known], df[known], group[known], groups)
    d0, s0_sq = prior.d0[group], prior.s0_sq[group]
    shrunk = np.where(np.isinf(d0), s0_sq, _weighted(d0, s0_sq, df, variance))
    total = np.bincount(group[known], weights=df[known], minlength=groups)
    df_total = np.minimum(d0 + df, total[group])
    delta = np.where(long, tonight - mean, np.nan)
    se = np.sqrt(shrunk * (1 + 1 / np.maximum(nights, 1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        p = two_sided(delta / se, df_total)
    p = np.where((se == 0) & (delta == 0), 1.0, p)
    return Deltas(delta, se, df_total, p, nights)


def two_sided(t: Floats, df: Floats) -> Floats:
    """p of Student's t; df may be infinite."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(df), 2 * special.ndtr(-np.abs(t)), 2 * special.stdtr(df, -np.abs(t)))


def fit_prior(variance: Floats, df: Floats, group: Ints, groups: int) -> Prior:
    """Moments of the log variances, section 6.2. All groups together where a group is small."""
    if variance.size == 0:
        return Prior(np.full(groups, np.nan), np.full(groups, np.nan))
    middle, _ = rows.group_medians(variance, group, groups)
    smallest = np.maximum(_TINY * middle[group], np.finfo(np.float64).tiny)
    half = df / 2
    e = np.log(np.maximum(variance, smallest)) - special.digamma(half) + np.log(half)
    trigamma = special.polygamma(1, half)
    own = _prior(e, trigamma, group, groups)
    night = _prior(e, trigamma, np.zeros_like(group), 1)
    few = np.bincount(group, minlength=groups) < _MIN_SERIES
    return Prior(np.where(few, night.d0[0], own.d0), np.where(few, night.s0_sq[0], own.s0_sq))


def _prior(e: Floats, trigamma: Floats, group: Ints, groups: int) -> Prior:
    n = np.maximum(np.bincount(group, minlength=groups), 1)
    mean = np.bincount(group, weights=e, minlength=groups) / n
    off = e - mean[group]
    spread = np.bincount(group, weights=off * off, minlength=groups) / np.maximum(n - 1, 1)
    excess = spread - np.bincount(group, weights=trigamma, minlength=groups) / n
    differ = excess > 0
    d0 = np.where(differ, 2 * trigamma_inverse(np.where(differ, excess, 1.0)), np.inf)
    finite = np.where(differ, d0, 2.0)
    shift = np.where(differ, special.digamma(finite / 2) - np.log(finite / 2), 0.0)
    return Prior(d0, np.exp(mean + shift))


def trigamma_inverse(x: Floats) -> Floats:
    """y with trigamma(y) = x > 0, by Newton's method on 1/trigamma (Smyth's appendix): it converges from
    below without a search."""
    y = 0.5 + 1 / x
    for _ in range(50):
        tri = special.polygamma(1, y)
        step = tri * (1 - tri / x) / special.polygamma(2, y)
        y = y + step
        if np.all(np.abs(step) < 1e-10 * y):
            break
    return np.where(x > 1e7, 1 / np.sqrt(x), np.where(x < 1e-6, 1 / x, y))


def _weighted(d0: Floats, s0_sq: Floats, df: Floats, variance: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return (d0 * s0_sq + df * variance) / (d0 + df)
