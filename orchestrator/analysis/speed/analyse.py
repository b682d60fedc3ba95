"""A night of the whole farm, from histories to what is unusual: the rule's steps in their order."""

from dataclasses import dataclass, replace

import numpy as np

from orchestrator.analysis.speed.baseline import History, Tonight, baseline_nights
from orchestrator.analysis.speed.detectable import detectable, limit_p
from orchestrator.analysis.speed.discovery import Screened, screen
from orchestrator.analysis.speed.moderated import Deltas, deltas
from orchestrator.analysis.speed.pooled import PHONES, Pooled, pool
from orchestrator.analysis.speed.rows import Bools, Floats, Ints, newest
from orchestrator.analysis.speed.rule import RULE, Rule
from orchestrator.analysis.speed.shift import Shifts, shifts


@dataclass(frozen=True, slots=True)
class Matrix:
    """Which series is what. A test is a case on a SoC; its series are that SoC's phones."""

    device: Ints
    """(series,) 0 … devices − 1"""
    test: Ints
    """(series,) 0 … tests − 1"""
    soc: Ints
    """(devices,) 0 … socs − 1"""
    code_changed: Bools
    """(tests,) The code hash is another than in the baseline."""
    threshold: Floats
    """(tests,) Smallest effect that matters, log ratio; ``rule.threshold`` where the kernel says nothing."""
    sentinel: Bools
    """(series,) Frozen cases whose code did not change."""

    @property
    def tests(self) -> int:
        return len(self.code_changed)


@dataclass(frozen=True, slots=True)
class NightAnalysis:
    shifts: Shifts
    baseline: Bools
    """(series, nights) that each was compared with."""
    deltas: Deltas
    """(series,) The common shift taken off."""
    pooled: Pooled
    """(tests,)"""
    screened: Screened
    """(tests,) Findings on SoCs."""
    phone: Screened
    """(series,) Findings of one phone that no finding of its SoC explains: items for who keeps the phones."""
    detectable: Floats
    """(tests,) Log ratio that would have been found with ``rule.power``."""


def analyse(matrix: Matrix, history: History, tonight: Tonight, rule: Rule = RULE) -> NightAnalysis:
    nights = history.log_ns.shape[1]
    fit = baseline_nights(history, tonight, replace(rule, window=nights))
    baseline = newest(fit, rule.window)
    # Nights that no series uses cost time in every step.
    used = baseline.any(axis=0)
    past = history.log_ns[:, used]
    devices = len(matrix.soc)
    # All that fits, older than a series' own baseline or not: series whose baselines lie weeks apart, because
    # some moved since, must have their shifts from the same nights.
    values = np.concatenate([np.where(fit[:, used], past, np.nan), tonight.log_ns[:, None]], axis=1)
    common = shifts(values, matrix.device, devices, matrix.sentinel, rule)
    values[:, :-1][~baseline[:, used]] = np.nan
    values -= common.taken_off[matrix.device]

    each = deltas(values[:, :-1], values[:, -1], matrix.device, devices, rule)
    pooled = pool(each, matrix.test, matrix.tests, rule)
    repeatable = matrix.code_changed & (pooled.phones >= PHONES)
    screened = screen(pooled.p, pooled.delta, pooled.agree, repeatable, matrix.threshold, rule)
    return NightAnalysis(
        shifts=common,
        baseline=baseline,
        deltas=each,
        pooled=pooled,
        screened=screened,
        phone=_phone(matrix, each, pooled, screened, rule),
        detectable=detectable(
            pooled.se, pooled.df, limit_p(pooled.p, screened.q, rule), matrix.threshold, rule
        ),
    )


def _phone(matrix: Matrix, each: Deltas, pooled: Pooled, screened: Screened, rule: Rule) -> Screened:
    """Series that a finding of their SoC explains are no tests here: as discoveries they would raise the
    number of false ones that the rate allows, and then be taken away."""
    of = matrix.test
    along = np.sign(pooled.delta[of]) == np.sign(each.delta)
    p = np.where(screened.found[of] & along, np.nan, each.p)
    alone = np.ones(len(of), np.bool_)
    own = screen(p, each.delta, alone, matrix.code_changed[of], matrix.threshold[of], rule)
    return Screened(own.q, own.found, own.suspect & ~(screened.suspect[of] & along))
