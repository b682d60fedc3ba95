"""What is unusual among all tests of a night, by false discovery rate and size; what to measure again."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import false_discovery_control

from orchestrator.analysis.speed.rows import Bools, Floats
from orchestrator.analysis.speed.rule import RULE, Rule


def q_values(p: Floats) -> Floats:
    """Benjamini and Hochberg's adjusted p over all tests that have one; NaN stays NaN."""
    known = np.isfinite(p)
    q = np.full(len(p), np.nan)
    if known.any():
        q[known] = false_discovery_control(p[known], method="bh")
    return q


@dataclass(frozen=True, slots=True)
class Screened:
    """One entry a test: (tests,) each."""

    q: Floats
    found: Bools
    """Unusual beyond the night's false discovery rate, larger than the threshold, and agreed on."""
    suspect: Bools
    """Not found, but its code changed and it may well be: worth measuring again in the same night."""


def screen(
    p: Floats, delta: Floats, agree: Bools, repeatable: Bools, threshold: Floats, rule: Rule = RULE
) -> Screened:
    """``threshold``: (tests,) smallest effect that matters, log ratio. ``repeatable``: (tests,) two codes are
    there to be measured in turns, on phones enough."""
    q = q_values(p)
    found = (q <= rule.q) & (np.abs(delta) > threshold) & agree
    suspect = ~found & repeatable & (p <= rule.suspect_p) & (np.abs(delta) > threshold / 2)
    return Screened(q, found, suspect)


def affordable(p: Floats, wanted: Bools, cost: Floats, budget: float) -> Bools:
    """Those of ``wanted`` that confirmation can pay for, the least likely by chance first.

    ``cost``: (tests,) samples of a first look on all phones that it needs; ``budget``: samples of the night.
    Ties go by position: the caller's order of tests is fixed.
    """
    order = np.flatnonzero(wanted)
    order = order[np.argsort(p[order], kind="stable")]
    paid = np.cumsum(cost[order]) <= budget
    chosen = np.zeros(len(p), np.bool_)
    chosen[order[paid]] = True
    return chosen
