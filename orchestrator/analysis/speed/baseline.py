"""Which nights a series is compared with: its last accepted ones on the same phone, in the same epoch."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.clocks import CLOCK_FLOOR
from orchestrator.analysis.speed.rows import Bools, Floats, Ints
from orchestrator.analysis.speed.rule import RULE, Rule


@dataclass(frozen=True, slots=True)
class Tonight:
    """One entry a series: (series,) each."""

    log_ns: Floats
    """NaN: measured without a number (``night.Reason``) or not measured."""
    basis: NDArray[np.int8]
    clock_hz: Floats
    epoch: Ints
    """Rises with a swapped phone and with an accepted shift; a new driver does not raise it."""


@dataclass(frozen=True, slots=True)
class History:
    """The nights before, oldest first: (series, nights) each."""

    log_ns: Floats
    accepted: Bools
    """Its verdict was ``same``, or it was ``new`` then, or a person accepted it."""
    basis: NDArray[np.int8]
    clock_hz: Floats
    epoch: Ints


def baseline_nights(history: History, tonight: Tonight, rule: Rule = RULE) -> Bools:
    """(series, nights): those that form the baseline, at most ``rule.window`` a series, the newest ones.

    A night counts if it is accepted, of the same epoch, summarised in the same way and at the same clock:
    another clock is another machine. Where tonight has no number nothing is known of its clock, and any
    night of the epoch counts (to tell a missing series from a new one).
    """
    blank = np.isnan(tonight.log_ns)[:, None]
    ratio = np.abs(history.clock_hz / tonight.clock_hz[:, None] - 1)
    clock = np.isnan(ratio) | (ratio <= CLOCK_FLOOR)
    alike = (history.basis == tonight.basis[:, None]) & clock
    fits = history.accepted & ~np.isnan(history.log_ns) & (history.epoch == tonight.epoch[:, None])
    fits &= alike | blank
    return newest(fits, rule.window)


def newest(fits: Bools, count: int) -> Bools:
    """(series, nights) The last ``count`` nights of each series."""
    newest_first = np.cumsum(fits[:, ::-1], axis=1)[:, ::-1]
    return fits & (newest_first <= count)
