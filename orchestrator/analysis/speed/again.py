"""A finding whose code did not change, measured a second time in the same night.

Two codes measured in turns would say "same" of it, rightly. Here the second measurement must say by itself
what the first one said. It shares the night with the first, so the first must be the clearer.
"""

from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.speed.analyse import Matrix, NightAnalysis
from orchestrator.analysis.speed.baseline import History
from orchestrator.analysis.speed.moderated import Deltas, deltas
from orchestrator.analysis.speed.pooled import Pooled, pool
from orchestrator.analysis.speed.rows import Bools, Floats
from orchestrator.analysis.speed.rule import RULE, Rule


@dataclass(frozen=True, slots=True)
class Again:
    deltas: Deltas
    """(series,)"""
    pooled: Pooled
    """(tests,)"""
    tests: Bools
    """Findings on SoCs that it confirms."""
    series: Bools
    """Items of one phone that it confirms."""


def again(matrix: Matrix, night: NightAnalysis, history: History, log_ns: Floats, rule: Rule = RULE) -> Again:
    """``log_ns``: (series,) of the second measurement, NaN where there was none. The phones' shifts are those
    of the first: few series do not make a new one."""
    used = night.baseline.any(axis=0)
    past = np.where(night.baseline[:, used], history.log_ns[:, used], np.nan)
    shift = night.shifts.taken_off[matrix.device]
    each = deltas(past - shift[:, :-1], log_ns - shift[:, -1], matrix.device, len(matrix.soc), rule)
    pooled = pool(each, matrix.test, matrix.tests, rule)

    def holds(p: Floats, delta: Floats, q: Floats, first: Floats, threshold: Floats) -> Bools:
        same_way = np.sign(delta) == np.sign(first)
        return (q <= rule.again_q) & (p < rule.again_p) & same_way & (np.abs(delta) > threshold)

    tests = (
        holds(pooled.p, pooled.delta, night.screened.q, night.pooled.delta, matrix.threshold) & pooled.agree
    )
    series = holds(each.p, each.delta, night.phone.q, night.deltas.delta, matrix.threshold[matrix.test])
    return Again(each, pooled, night.screened.found & tests, night.phone.found & series)
