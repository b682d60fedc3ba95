"""Deltas of the phones of one SoC, averaged; never their times, which differ by 10–20 % between phones."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from orchestrator.analysis.speed.moderated import Deltas, two_sided
from orchestrator.analysis.speed.rows import Bools, Floats, Ints
from orchestrator.analysis.speed.rule import RULE, Rule

PHONES = 2
"""That must agree."""


@dataclass(frozen=True, slots=True)
class Pooled:
    """One entry a test, i.e. a case on a SoC: (tests,) each."""

    delta: Floats
    """Mean over its phones; NaN without any."""
    se: Floats
    df: Floats
    p: Floats
    phones: Ints
    """With a delta tonight."""
    agreeing: Ints
    """Of them, those whose own delta points the same way with p < ``rule.agree_p``, one-sided."""

    @property
    def agree(self) -> Bools:
        """Two phones say the same; one alone speaks of itself only."""
        return self.agreeing >= PHONES


def pool(deltas: Deltas, test: Ints, tests: int, rule: Rule = RULE) -> Pooled:
    """``test``: (series,) index 0 … tests − 1 of the SoC and case that each series belongs to.

    Degrees of freedom of the sum by Welch and Satterthwaite (Biometrics Bulletin 2(6), 1946).
    """
    known = np.isfinite(deltas.delta) & np.isfinite(deltas.p)
    of, delta, var, df = test[known], deltas.delta[known], deltas.se[known] ** 2, deltas.df[known]
    phones = np.bincount(of, minlength=tests).astype(np.int64)
    n = np.maximum(phones, 1)
    mean = np.where(phones > 0, _sum(delta, of, tests) / n, np.nan)
    total = _sum(var, of, tests)
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled_df = np.where(total > 0, total**2 / _sum(var**2 / df, of, tests), np.inf)
        se = np.sqrt(total) / n
        p = two_sided(mean / se, pooled_df)
        along = np.sign(mean[of]) * delta / np.sqrt(var)
    p = np.where((se == 0) & (mean == 0), 1.0, p)
    own = np.where(np.isinf(df), special.ndtr(-along), special.stdtr(df, -along))
    agreeing = np.bincount(of[own < rule.agree_p], minlength=tests).astype(np.int64)
    return Pooled(mean, se, pooled_df, p, phones, agreeing)


def _sum(values: Floats, of: Ints, tests: int) -> Floats:
    return np.bincount(of, weights=values, minlength=tests).astype(np.float64)
