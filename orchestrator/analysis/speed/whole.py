"""What a phone does as a whole, night by night, judged like a series of its own.

The common shift that ``shift`` takes off each series is gone from every series' verdict: a driver, a worn
battery or a warm room that moves all variants alike is found here or nowhere. Nights differ by 1.5 % as a
whole and cannot be measured a second time, so the bound is strict, and tonight's shift is looked at twice:
alone, and together with the last night and those that were told already.
"""

from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.speed import rows
from orchestrator.analysis.speed.moderated import Deltas, deltas, two_sided
from orchestrator.analysis.speed.pooled import Pooled, pool
from orchestrator.analysis.speed.rows import Bools, Floats, Ints
from orchestrator.analysis.speed.rule import RULE, Rule
from orchestrator.analysis.speed.shift import shifts

PER_PHONE = 200
"""Variants whose median stands for the phone: 2 % each give it to 0.2 %, and more cost time."""
ALARMS = 0.01
"""Of nights without change in which any phone or SoC is said to have moved as a whole (Bonferroni)."""
LOOKS = 2


@dataclass(frozen=True, slots=True)
class Whole:
    delta: Floats
    """(devices,) Tonight, or lately, against the phone's accepted nights, log ratio; NaN: too few nights."""
    se: Floats
    """(devices,) Of one night's delta."""
    soc_delta: Floats
    """(socs,) Mean over its phones."""
    device: Bools
    """(devices,) It moved."""
    soc: Bools
    """(socs,) It moved, and two phones agree."""


def phone_shifts(log_ns: Floats, fits: Bools, device: Ints, devices: int, rule: Rule = RULE) -> Floats:
    """(devices, nights) log ratio of each night to the phone's usual one; NaN where too few variants tell.

    Args:
        log_ns: (series, nights), tonight last.
        fits: (series, nights) nights that are to be compared: of the same code, clock and epoch, and no
            change of the series itself.
    """
    kept = _fullest(fits, device)
    values = np.where(fits[kept], log_ns[kept], np.nan)
    if values.shape[1] < 2:
        return np.full((devices, values.shape[1]), np.nan)
    return shifts(values, device[kept], devices, None, rule).all


def _fullest(fits: Bools, device: Ints) -> Ints:
    """``PER_PHONE`` series of each phone, those with tonight and the most nights first."""
    count = np.count_nonzero(fits, axis=1) + fits.shape[1] * fits[:, -1]
    order = np.lexsort((-count, device))
    ranked = device[order]
    rank = np.arange(len(order)) - np.searchsorted(ranked, ranked, side="left")
    return np.sort(order[rank < PER_PHONE]).astype(np.int64)


def judge_whole(shift: Floats, accepted: Bools, soc: Ints, socs: int, rule: Rule = RULE) -> Whole:
    """
    Args:
        shift: (devices, nights) of ``phone_shifts``.
        accepted: (devices, nights) where the phone as a whole was not said to have moved.
        soc: (devices,) 0 … socs − 1.
    """
    past = np.where(accepted[:, :-1], shift[:, :-1], np.nan)
    past = np.where(rows.newest(np.isfinite(past), rule.window), past, np.nan)
    lately = _lately(shift, past)
    alone = np.zeros_like(lately)
    alone[:, -1] = lately[:, -1]
    limit = ALARMS / LOOKS / max(len(soc) + socs, 1)
    one = _look(past, shift, alone)
    more = _look(np.where(lately[:, :-1], np.nan, past), shift, lately)
    of_one, of_more = (pool(look, soc, socs, rule) for look in (one, more))
    by_more = _moved(more, limit, rule) & _along(one.delta, more.delta)
    on_more = _moved(of_more, limit, rule) & _along(of_one.delta, of_more.delta) & of_more.agree
    # The mean of several nights is the better number, once they are all known to have moved.
    told = np.count_nonzero(lately, axis=1) > LOOKS
    by_one, on_one = _moved(one, limit, rule), _moved(of_one, limit, rule) & of_one.agree
    several = by_more & (told | ~by_one)
    on_several = on_more & ((np.bincount(soc[told], minlength=socs) > 0) | ~on_one)
    return Whole(
        delta=np.where(several | on_several[soc], more.delta, one.delta),
        se=one.se,
        soc_delta=np.where(on_several, of_more.delta, of_one.delta),
        device=by_more | by_one,
        soc=on_more | on_one,
    )


def _lately(shift: Floats, past: Floats) -> Bools:
    """(devices, nights) Tonight, the last night, and all others since the phone's last accepted one."""
    nights = shift.shape[1]
    number = rows.indices(nights)
    last = np.where(np.isfinite(past), number[:-1], -1).max(axis=1, initial=-1)
    return np.isfinite(shift) & ((number > last[:, None]) | (number >= nights - LOOKS))


def _look(past: Floats, shift: Floats, over: Bools) -> Deltas:
    """Mean of the nights ``over`` against ``past``. Phones are few and share one prior."""
    count = over.sum(axis=1)
    tonight = np.where(over, shift, 0.0).sum(axis=1) / np.maximum(count, 1)
    found = deltas(past, np.where(count > 0, tonight, np.nan), np.zeros(len(past), np.int64), 1)
    n = np.maximum(found.nights, 1)
    se = found.se * np.sqrt((1 / np.maximum(count, 1) + 1 / n) / (1 + 1 / n))
    with np.errstate(divide="ignore", invalid="ignore"):
        p = two_sided(found.delta / se, found.df)
    return Deltas(found.delta, se, found.df, p, found.nights)


def _along(tonight: Floats, lately: Floats) -> Bools:
    """Tonight is nearer to where it lately was than to its baseline."""
    return np.abs(tonight - lately) < np.abs(tonight)


def _moved(look: Deltas | Pooled, limit: float, rule: Rule) -> Bools:
    return (look.p <= limit) & (np.abs(look.delta) > rule.threshold)
