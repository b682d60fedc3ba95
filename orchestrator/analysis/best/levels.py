"""Log times of variants on phones in nights, split into what the phone-night does to all and what is a
variant's own.

``log = own[variant, phone] + level[phone, night]``, fitted by least squares. Where every variant was measured
in every night that is the log ratio to the geometric mean of the variants in that phone's night; where some
are missing, a night without its slowest variants is no faster night.
"""

from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.speed.rows import Bools, Floats

SWEEPS = 500
ENOUGH = 1e-9
"""Change of a sweep, in log units, below which the fit stands."""


@dataclass(frozen=True, slots=True)
class Levels:
    own: Floats
    """(variants, phones) log ratio to the phone's common level; NaN: never measured there, or never beside
    the others. Levels of phones are fitted likewise, so that rows compare across columns."""
    score: Floats
    """(variants,) of the phone in the middle; NaN: cannot be compared. The smallest is the fastest."""
    level: Floats
    """(phones,) log ns of the variant with score 0."""
    used: Bools
    """(variants, phones, nights): cells that took part."""


def levels(log_ns: Floats) -> Levels:
    """``log_ns``: (variants, phones, nights), NaN where there is no number."""
    used = np.isfinite(log_ns)
    for phone in range(log_ns.shape[1]):
        used[:, phone] &= connected(used[:, phone])[:, None]
    together = connected(np.any(used, axis=2))
    used &= together[:, None, None]
    known = np.where(used, log_ns, np.nan)
    own, night = _two_ways(known)
    _, phone = _two_ways(own[:, None, :])
    own = own - phone  # (variants, phones) − (1, phones)
    # A phone's level: its nights' mean level and what its variants have in common.
    level = phone[0] + _mean(night, 1)
    return Levels(own, middle(own), level, used)


def middle(values: Floats) -> Floats:
    """Median over the last axis without NaN; NaN where there is nothing."""
    ranked = np.sort(values, axis=-1)
    count = np.count_nonzero(~np.isnan(values), axis=-1)
    low = np.maximum(count - 1, 0) // 2
    high = np.minimum(count // 2, values.shape[-1] - 1)
    both = [np.take_along_axis(ranked, at[..., None], axis=-1)[..., 0] for at in (low, high)]
    return (both[0] + both[1]) / 2


def connected(there: Bools) -> Bools:
    """(rows,) Rows of the largest set that compare with each other: directly in a column that both have, or
    by way of others. Of sets of one size, the one with the first row.

    Args:
        there: (rows, columns)
    """
    found = np.zeros(len(there), np.bool_)
    left = there.any(axis=1)
    while left.any():
        inside = np.zeros(len(there), np.bool_)
        inside[int(np.argmax(left))] = True
        size = 0
        while size != (size := int(inside.sum())):
            inside |= there[:, there[inside].any(axis=0)].any(axis=1)
        if size > found.sum():
            found = inside
        left &= ~inside
    return found


def _two_ways(values: Floats) -> tuple[Floats, Floats]:
    """(variants, phones, nights) → effects of variants (variants, phones) with mean 0 a phone, and levels
    (phones, nights); NaN where nothing is known."""
    level = _mean(values, 0)
    own = _mean(values - level, 2)
    for _ in range(SWEEPS):
        level = _mean(values - own[:, :, None], 0)
        before, own = own, _mean(values - level, 2)
        if not np.any(np.abs(own - before) > ENOUGH):
            break
    centre = _mean(own, 0)
    return own - centre, level + centre[:, None]


def _mean(values: Floats, axis: int) -> Floats:
    known = ~np.isnan(values)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
