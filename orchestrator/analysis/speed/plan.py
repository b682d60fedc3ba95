"""What is measured again in the same night, within the night's budget: findings and suspects on two phones of
their SoC, and items of one phone on that phone. The least likely by chance first."""

from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.speed.analyse import Matrix, NightAnalysis
from orchestrator.analysis.speed.confirm import FIRST_SAMPLES
from orchestrator.analysis.speed.discovery import affordable
from orchestrator.analysis.speed.pooled import PHONES
from orchestrator.analysis.speed.rows import Bools, Floats, Ints
from orchestrator.analysis.speed.rule import RULE, Rule

LATER_LOOKS = 1.6
"""Samples of all looks ÷ samples of the first that are set aside: equal codes take 1.2 to 1.7
(docs/measurements/detection.txt). Whoever runs the later looks asks ``affordable`` again with what is
left."""


@dataclass(frozen=True, slots=True)
class Plan:
    tests: Bools
    """(tests,) measured again on a SoC."""
    series: Bools
    """(series,) measured again: ``PHONES`` of each of those tests, and the phones' own items."""
    unpaid: int
    """Findings and suspects beyond the budget: those that were paid for speak for their groups."""


def plan(
    matrix: Matrix, night: NightAnalysis, samples: int, told: Bools | None = None, rule: Rule = RULE
) -> Plan:
    """
    Args:
        samples: measured in the whole night.
        told: (series,) said to have moved this way the last time, already: that is no news to be confirmed.
    """
    tests = matrix.tests
    known = np.zeros(len(matrix.test), np.bool_) if told is None else told
    there = np.bincount(matrix.test[np.isfinite(night.deltas.delta)], minlength=tests)
    # What one phone has shown before is no news of that phone; that others show it now is.
    known_tests = np.bincount(matrix.test[known], minlength=tests) >= np.clip(there, 1, PHONES)
    wanted = np.concatenate(
        [
            (night.screened.found | night.screened.suspect) & ~known_tests,
            (night.phone.found | night.phone.suspect) & ~known,
        ]
    )
    p = np.concatenate([night.pooled.p, night.deltas.p])
    # Codes take turns; what did not change is measured once more, as often as the first time.
    once = samples / max(int(np.count_nonzero(np.isfinite(night.deltas.delta))), 1)
    cost = np.where(matrix.code_changed, FIRST_SAMPLES * LATER_LOOKS, once)
    phones = np.concatenate([PHONES * cost, cost[matrix.test]])
    paid = affordable(p, wanted, phones, rule.samples_for_confirmation(samples))
    chosen, items = paid[:tests], paid[tests:]
    strongest = _strongest(matrix.test, night.deltas.t * np.sign(night.pooled.delta)[matrix.test])
    return Plan(chosen, items | (strongest & chosen[matrix.test]), int(np.count_nonzero(wanted & ~paid)))


def _strongest(test: Ints, along: Floats) -> Bools:
    """(series,) The ``PHONES`` of each test that moved most its way."""
    order = np.lexsort((-np.nan_to_num(along, nan=-np.inf), test))
    ranked = test[order]
    start = np.searchsorted(ranked, ranked, side="left")
    rank = np.arange(len(order)) - start
    chosen = np.zeros(len(test), np.bool_)
    chosen[order[rank < PHONES]] = True
    return chosen & np.isfinite(along)
