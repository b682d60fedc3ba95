"""What a whole phone did in a night: the shift that all its variants share, and the sentinels beside it.

A warm night or a new boot moves every variant of a phone by the same ratio. Taken off each series, that
shift is judged as a series of its own: a driver that slows everything must not vanish in it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.speed import rows
from orchestrator.analysis.speed.rows import Bools, Floats, Ints
from orchestrator.analysis.speed.rule import RULE, Rule

_ROUNDS = 2
"""Of median polish (Tukey, Exploratory Data Analysis, 1977): levels of series, then shifts of nights."""
_CLEAR = 4.0
"""Standard errors of the sentinels' median by which the variants must differ from it."""


@dataclass(frozen=True, slots=True)
class Shifts:
    """(devices, nights) each; the last column is tonight. Relative to the phone's usual night."""

    all: Floats
    """Median residual over all variants; NaN where there are too few."""
    series: Ints
    """Variants behind it."""
    sentinels: Floats
    """Median residual over the frozen cases; NaN without any."""
    diverged: Bools
    """(devices,) Tonight most variants moved and the sentinels did not, or the other way round: what most
    variants did is no property of the phone."""

    @property
    def taken_off(self) -> Floats:
        """What is subtracted: the variants' shift, or the sentinels' tonight where the two diverged."""
        taken = np.nan_to_num(self.all)
        taken[:, -1] = np.where(self.diverged, np.nan_to_num(self.sentinels[:, -1]), taken[:, -1])
        return taken


def shifts(
    values: Floats, device: Ints, devices: int, sentinel: Bools | None = None, rule: Rule = RULE
) -> Shifts:
    """``values``: (series, nights) log times of the baseline nights and, last, of tonight; NaN elsewhere.

    ``device``: (series,) index 0 … devices − 1. ``sentinel``: (series,) the frozen cases, of unchanged code.
    """
    nights = values.shape[1]
    found, count = np.zeros((devices, nights)), np.zeros((devices, nights), np.int64)
    level = rows.median(values[:, :-1])
    for _ in range(_ROUNDS):
        found, count = _by_night(values - level[:, None], device, devices)
        found[count < rule.min_shift_series] = np.nan
        level = rows.median((values - np.nan_to_num(found)[device])[:, :-1])
    frozen, diverged = np.full((devices, nights), np.nan), np.zeros(devices, np.bool_)
    if sentinel is not None and sentinel.any():
        residual, of = (values - level[:, None])[sentinel], device[sentinel]
        frozen, n = _by_night(residual, of, devices)
        off = np.abs(residual[:, -1] - frozen[of, -1])
        mad, _ = rows.group_medians(off, of, devices)
        error = 1.2533 * 1.4826 * mad / np.sqrt(np.maximum(n[:, -1], 1))
        limit = np.maximum(rule.threshold, _CLEAR * error)
        diverged = (np.abs(found[:, -1] - frozen[:, -1]) > limit) & (n[:, -1] >= _MIN_SENTINELS)
    return Shifts(found, count, frozen, diverged)


def _by_night(residual: Floats, device: Ints, devices: int) -> tuple[Floats, Ints]:
    columns = [rows.group_medians(residual[:, t], device, devices) for t in range(residual.shape[1])]
    return np.stack([m for m, _ in columns], axis=1), np.stack([n for _, n in columns], axis=1)


_MIN_SENTINELS = 5
SENTINELS = 8
"""5 to 10; odd ones out of eight do not move their median."""
_MIN_NS = 100_000
"""A sentinel's time: a shorter one shows the timer's steps."""


@dataclass(frozen=True, slots=True)
class SentinelCandidate:
    """A case on a device over its accepted nights, code unchanged in all of them."""

    case_id: str
    kernel: str
    nights: int
    median_ns: float
    variance: float
    """Night to night, of the logarithm, the common shift taken off."""


def choose_sentinels(candidates: Iterable[SentinelCandidate]) -> tuple[str, ...]:
    """Case ids to freeze: the steadiest of each kernel in turn, so that no one kernel speaks for the phone.

    The same for any order of candidates. Choose once, store them, and choose again only for a new phone.
    """
    fit = [c for c in candidates if c.nights >= RULE.min_nights and c.median_ns >= _MIN_NS]
    steady = sorted(fit, key=lambda c: (c.kernel, c.variance, c.case_id))
    turn: dict[str, int] = {}
    ranked: list[tuple[int, str, str]] = []
    for c in steady:
        ranked.append((turn.get(c.kernel, 0), c.kernel, c.case_id))
        turn[c.kernel] = turn.get(c.kernel, 0) + 1
    return tuple(case_id for _, _, case_id in sorted(ranked)[:SENTINELS])
