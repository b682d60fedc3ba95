"""Why a night has no number, and what was left out of one that has, in words for a report."""

import math
from typing import assert_never

from orchestrator.analysis.speed.night import Basis, Nights, Reason
from orchestrator.analysis.speed.rule import RULE, Rule

_NS_PER_MS = 1e6


def sentence(night: Nights, series: int, rule: Rule = RULE) -> str:
    """``12 of 20 samples in the dominant clock state (900 MHz); 3 throttled left out``"""
    n, good, used = (int(a[series]) for a in (night.measured, night.good, night.used))
    left_out = _left_out(night, series)
    reason = Reason(int(night.reason[series]))
    match reason:
        case Reason.NONE:
            text = _basis(night, series, used, n)
        case Reason.FEW_MEASURED:
            text = f"{n} samples: at least {rule.min_samples} are needed"
        case Reason.FEW_GOOD:
            text = f"{good} good samples of {n}: at least {rule.min_in_state} are needed"
        case Reason.NO_DOMINANT_STATE:
            text = f"no clock state holds more than half of {good} good samples{_modes(night, series)}"
        case Reason.FEW_IN_STATE:
            text = f"{used} of {good} good samples in one state: at least {rule.min_in_state} are needed"
        case Reason.TWO_MODES:
            text = f"two modes and neither prevails{_modes(night, series)}"
        case Reason.RAMP:
            text = (
                f"times moved by more than {rule.ramp:.0%} between the first and the last third of the trial"
            )
        case _:
            assert_never(reason)
    return text + left_out


def _basis(night: Nights, series: int, used: int, measured: int) -> str:
    if Basis(int(night.basis[series])) is Basis.CLOCK_STATE:
        mhz = float(night.clock_hz[series]) / 1e6
        return f"{used} of {measured} samples in the clock state that stands for the night ({mhz:.0f} MHz)"
    return f"no clock data: 20th percentile of {int(night.good[series])} samples{_modes(night, series)}"


def _modes(night: Nights, series: int) -> str:
    modes = night.modes
    if not modes.found[series]:
        return ""
    fast, slow = (math.exp(float(log[series])) / _NS_PER_MS for log in (modes.fast, modes.slow))
    fast_n, slow_n = int(modes.fast_n[series]), int(modes.slow_n[series])
    return f": {fast_n} around {fast:.4g} ms, {slow_n} around {slow:.4g} ms"


def _left_out(night: Nights, series: int) -> str:
    counts = ((int(night.throttled[series]), "throttled"), (int(night.hot[series]), "over the ceiling"))
    words = [f"{n} {what}" for n, what in counts if n]
    return f"; {', '.join(words)} left out" if words else ""
