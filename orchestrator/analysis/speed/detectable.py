"""The smallest change that a test would have found tonight: what "same" is worth."""

import numpy as np
from scipy import special

from orchestrator.analysis.speed.rows import Floats
from orchestrator.analysis.speed.rule import RULE, Rule


def detectable(se: Floats, df: Floats, p: float, threshold: Floats, rule: Rule = RULE) -> Floats:
    """Log ratio that with the rule's power gives a two-sided p of ``p`` and an estimate above ``threshold``.

    ``p``: the one that a test had to reach this night: ``limit_p``. Shifted t instead of the noncentral one:
    from 13 degrees of freedom they differ by less than a hundredth of the answer.
    """
    finite = np.where(np.isinf(df), 1e9, df)
    reach = special.stdtrit(finite, 1 - p / 2)
    margin = special.stdtrit(finite, rule.power)
    return np.maximum(se * reach, threshold) + se * margin


def limit_p(p: Floats, q: Floats, rule: Rule = RULE) -> float:
    """Largest p that the night's false discovery rate let pass; with none, what a single one would need."""
    known = np.isfinite(p)
    tests = int(np.count_nonzero(known))
    passed = p[known & (q <= rule.q)]
    if len(passed) == 0:
        return rule.q / max(tests, 1)
    return max(float(passed.max()), rule.q * len(passed) / tests)
