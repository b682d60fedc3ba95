"""Two codes measured in turns on one phone: different, the same, or not known yet. Pure; nothing is run here.

Order A B B A, again and again in one thermal window, A being the baseline's code: neighbours share the
night, the temperature and mostly the clock, and a steady drift cancels within each four. A pair whose two
samples were not taken in one clock state, or throttled, or too warm, does not count.

Three looks (``LOOKS``) bound the errors by Bonferroni: codes that do not differ are called different with
probability at most 0.001, and an effect as large as the threshold is called none with at most 0.05.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from orchestrator.analysis.clocks import CLOCK_FLOOR
from orchestrator.analysis.speed import rows, signed_rank
from orchestrator.analysis.speed.modes import modes_of
from orchestrator.analysis.speed.night import PERCENTILE
from orchestrator.analysis.speed.rows import Bools, Floats, Ints, indices
from orchestrator.analysis.speed.rule import RULE, Rule


class Answer(StrEnum):
    DIFFERENT = "different"
    SAME = "same"
    """Any effect is smaller than the threshold."""
    UNKNOWN = "unknown"
    """More samples are needed."""


@dataclass(frozen=True, slots=True)
class Look:
    pairs: int
    """Measured by then, all looks together; a multiple of two."""
    alpha: float
    """Share of the probability to call equal codes different."""
    beta: float
    """Share of the probability to call an effect of the threshold's size none."""


LOOKS = (Look(16, 0.0002, 0.02), Look(28, 0.0003, 0.015), Look(48, 0.0005, 0.015))
FIRST_SAMPLES = 2 * LOOKS[0].pairs
"""What measuring again costs at least, on one phone."""


@dataclass(frozen=True, slots=True)
class Interleaved:
    """Samples in the order A B B A A B B A …: (rows, 4k) each, as ``night.Samples``."""

    latency_ns: Floats
    gpu_hz: Floats
    temp_mc: Floats
    throttled: Bools


@dataclass(frozen=True, slots=True)
class Decision:
    answer: Answer
    effect: float
    """Log ratio of candidate to baseline; NaN without a valid pair."""
    low: float
    high: float
    """Limits that each err with the look's beta."""
    p: float
    pairs: int
    """Measured."""
    valid: int


def differences(samples: Interleaved, rule: Rule = RULE) -> Floats:
    """(rows, 2k) log ratios candidate ÷ baseline of neighbours; NaN for a pair that does not count."""
    fours, rest = divmod(samples.latency_ns.shape[1], 4)
    if rest:
        raise ValueError(f"{4 * fours + rest} interleaved samples: whole fours A B B A are needed")
    good = (samples.latency_ns > 0) & ~samples.throttled & ~(samples.temp_mc > rule.die_ceiling_mc)
    times = np.where(good, np.log(np.where(good, samples.latency_ns, 1.0)), np.nan)
    clocked = np.all(~good | (samples.gpu_hz > 0), axis=1)[:, None]
    at = 4 * indices(fours)
    slow = _slow(times, np.concatenate([at, at + 3]), np.concatenate([at + 1, at + 2]))

    def pair(first: Ints, second: Ints) -> Floats:
        same_mode: Bools = slow[:, first] == slow[:, second]
        ratio = samples.gpu_hz[:, first] / samples.gpu_hz[:, second]
        one_state = np.abs(np.log(np.where(ratio > 0, ratio, 1.0))) <= np.log1p(CLOCK_FLOOR)
        alike = np.where(clocked, one_state, same_mode)
        return np.where(alike, times[:, second] - times[:, first], np.nan)

    both = np.empty((len(times), 2 * fours))
    both[:, 0::2] = pair(at, at + 1)
    both[:, 1::2] = pair(at + 3, at + 2)
    return both


def _slow(times: Floats, baseline: Ints, candidate: Ints) -> Bools:
    """Samples in the slower of two modes, from times alone. Each code is first put at its own faster mode, so
    that a difference of the codes blurs no mode; and one cut serves both: a mode that were seen in one code
    only would make a difference out of nothing."""
    centred = times.copy()
    for code in (baseline, candidate):
        ranked, count = rows.ordered(times[:, code])
        centred[:, code] -= rows.quantile(ranked, np.zeros_like(count), count, PERCENTILE)[:, None]
    modes = modes_of(centred)
    return modes.found[:, None] & (centred > modes.cut[:, None])


@dataclass(frozen=True, slots=True)
class Decisions:
    """(rows,) each; ``answer`` holds 1 different, 0 unknown, −1 same."""

    answer: Ints
    effect: Floats
    low: Floats
    high: Floats
    p: Floats
    valid: Ints


def decide(pairs: Floats, look: int, threshold: float = RULE.threshold) -> Decisions:
    """All pairs measured until look 0, 1 or 2: (rows, LOOKS[look].pairs), NaN for those that do not count."""
    n = np.count_nonzero(~np.isnan(pairs), axis=1).astype(np.int64)
    shape = len(pairs)
    effect, p = np.full(shape, np.nan), np.ones(shape)
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    for count in np.unique(n):
        at = np.flatnonzero(n == count)
        kept = pairs[at]
        kept = kept[~np.isnan(kept)].reshape(len(at), int(count))
        p[at] = signed_rank.p_values(kept)
        effect[at], low[at], high[at] = signed_rank.estimate_and_limits(kept, LOOKS[look].beta)
    different = (p <= LOOKS[look].alpha) & (np.abs(effect) > threshold)
    same = ~different & (low > -threshold) & (high < threshold)
    return Decisions(different.astype(np.int64) - same, effect, low, high, p, n)


def decision(samples: Interleaved, threshold: float = RULE.threshold, rule: Rule = RULE) -> Decision:
    """Of one comparison: one row of samples, as many pairs as one of the looks has."""
    pairs = differences(samples, rule)
    planned = [look.pairs for look in LOOKS]
    if len(pairs) != 1 or pairs.shape[1] not in planned:
        raise ValueError(
            f"{len(pairs)} × {pairs.shape[1]} pairs: looks are at {planned} pairs of one comparison"
        )
    look = planned.index(pairs.shape[1])
    found = decide(pairs, look, threshold)
    answer = {1: Answer.DIFFERENT, 0: Answer.UNKNOWN, -1: Answer.SAME}[int(found.answer[0])]
    return Decision(
        answer=answer,
        effect=float(found.effect[0]),
        low=float(found.low[0]),
        high=float(found.high[0]),
        p=float(found.p[0]),
        pairs=planned[look],
        valid=int(found.valid[0]),
    )
