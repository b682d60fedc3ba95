"""Which nights a series is compared with: its last accepted ones on the same phone, in the same epoch."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.clocks import CLOCK_FLOOR
from orchestrator.analysis.speed import rows
from orchestrator.analysis.speed.pooled import PHONES
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
    return rows.newest(_accepted(history, tonight) & (_alike(history, tonight) | blank), rule.window)


def _accepted(history: History, tonight: Tonight) -> Bools:
    return history.accepted & ~np.isnan(history.log_ns) & (history.epoch == tonight.epoch[:, None])


def _alike(history: History, tonight: Tonight) -> Bools:
    """Summarised in the same way and at the same clock."""
    return (history.basis == tonight.basis[:, None]) & same_clock(history.clock_hz, tonight.clock_hz[:, None])


def same_clock(hz: Floats, other: Floats) -> Bools:
    """A clock that is not known is any."""
    ratio = np.abs(hz / other - 1)
    return np.isnan(ratio) | (ratio <= CLOCK_FLOOR)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Series that have accepted nights enough and no baseline, for want of nights like tonight: (series,)
    each."""

    nights: Ints
    """Accepted ones that are not like tonight, as many at most as a baseline has; 0: not such a series."""
    here: Ints
    """Accepted ones that are."""
    clock_hz: Floats
    """Median of the former; NaN where most of those are summarised in another way, whatever their clock."""


def elsewhere(history: History, tonight: Tonight, rule: Rule = RULE) -> Elsewhere:
    """A clock that fell for good leaves all series of a phone without a baseline when they are slower."""
    fits, alike = _accepted(history, tonight), _alike(history, tonight)
    here = np.count_nonzero(rows.newest(fits & alike, rule.window), axis=1)
    blind = ~np.isnan(tonight.log_ns) & (here < rule.min_nights)
    blind &= np.count_nonzero(fits, axis=1) >= rule.min_nights
    other = rows.newest(fits & ~alike, rule.window) & blind[:, None]
    nights = np.count_nonzero(other, axis=1)
    other &= history.basis == tonight.basis[:, None]
    clock, at = np.full(len(blind), np.nan), np.flatnonzero(2 * np.count_nonzero(other, axis=1) > nights)
    clock[at] = rows.median(np.where(other[at], history.clock_hz[at], np.nan))
    return Elsewhere(nights.astype(np.int64), here.astype(np.int64), clock)


def at_any_clock(history: History, tonight: Tonight) -> Bools:
    """(series, nights): accepted, of the epoch and summarised as tonight, whatever their clock."""
    return _accepted(history, tonight) & (history.basis == tonight.basis[:, None])


def left_clock(history: History, tonight: Tonight, device: Ints, soc: Ints, still: Bools) -> Bools:
    """(devices, nights) Of phones that left their clock, so that as wholes they are compared with nights at
    another one: tonight, and the nights in a row before it at tonight's clock. Most series tell which.

    A clock that a phone had before it last had another one is a state of it: it comes and goes. One night of
    one phone may be the first of those, so there are two of them, or two phones of a SoC.

    Args:
        device: (series,) 0 … devices − 1.
        soc: (devices,)
        still: (devices, nights before) that the phone as a whole is compared with.
    """
    fits = at_any_clock(history, tonight)
    here = fits & _alike(history, tonight)
    found = np.zeros((len(still), still.shape[1] + 1), np.bool_)
    for number in range(len(still)):
        own = device == number
        nights = np.count_nonzero(fits[own], axis=0)
        usual = (2 * np.count_nonzero(here[own], axis=0) > nights) & (nights > 0)
        other = np.flatnonzero(~usual & (nights > 0))
        if len(other) and not usual[: other[-1]].any() and still[number, other].any():
            found[number, :-1] = usual
            found[number, -1] = True
    together = np.bincount(soc[found[:, -1]], minlength=int(soc.max(initial=0)) + 1)[soc] >= PHONES
    return found & (found[:, :-1].any(axis=1) | together)[:, None]
