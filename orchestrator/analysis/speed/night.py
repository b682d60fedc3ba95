"""One number for a series in one night, out of its raw samples, or the reason why there is none (G4-05).

All series of a device-night at once. A sample counts unless the device was throttled or over the ceiling.
Where every sample's clock is known, the median in one clock state stands for the night; else the 20th
percentile of the times, which says so (``basis``). Nothing stands for two modes of which neither prevails.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.clocks import CLOCK_FLOOR
from orchestrator.analysis.speed import rows
from orchestrator.analysis.speed.modes import Modes, modes_of
from orchestrator.analysis.speed.rows import Bools, Floats, Ints
from orchestrator.analysis.speed.rule import RULE, Rule

PERCENTILE = 0.2
"""Without clocks: low enough to lie in the faster state, high enough not to be one lucky sample."""
_CHUNK = 20_000
"""Series at a time: clock states compare each sample with each."""


class Basis(IntEnum):
    NONE = 0
    CLOCK_STATE = 1
    """Median in one clock state."""
    PERCENTILE_20 = 2
    """No clock data: 20th percentile of all good samples."""


class Reason(IntEnum):
    """Why a night has no number. The first that holds."""

    NONE = 0
    FEW_MEASURED = 1
    FEW_GOOD = 2
    NO_DOMINANT_STATE = 3
    FEW_IN_STATE = 4
    TWO_MODES = 5
    RAMP = 6


@dataclass(frozen=True, slots=True)
class Samples:
    """Of many series in one night, one a row. Rows are padded with NaN; order is the order of measuring."""

    latency_ns: Floats
    """(series, n)"""
    gpu_hz: Floats
    """(series, n) around each sample; NaN or 0 where the device shows none."""
    temp_mc: Floats
    """(series, n) of the GPU or the SoC; NaN where unknown."""
    throttled: Bools
    """(series, n)"""
    battery_mc: Floats | None = None
    """(series,) likewise, of the battery around the batch; None: of no series."""

    def hot(self, rule: Rule = RULE) -> Bools:
        """(series, n) Over one of the ceilings."""
        die: Bools = self.temp_mc > rule.die_ceiling_mc
        return die if self.battery_mc is None else die | (self.battery_mc > rule.ceiling_mc)[:, None]


@dataclass(frozen=True, slots=True)
class Nights:
    """One entry a series: (series,) each."""

    log_ns: Floats
    """NaN exactly where ``reason`` is not NONE."""
    basis: NDArray[np.int8]
    reason: NDArray[np.int8]
    clock_hz: Floats
    """Median clock of the samples that stand for the night; NaN without clock data."""
    measured: Ints
    throttled: Ints
    hot: Ints
    """Over the ceiling and not throttled."""
    good: Ints
    used: Ints
    modes: Modes
    """Of the good samples' times."""


def summarise(samples: Samples, usual_hz: Floats | None = None, rule: Rule = RULE) -> Nights:
    """``usual_hz``: clock of each series in its baseline, NaN where it has none. Samples at that clock are
    taken where there are enough of them, so that a night at two clocks compares with nights at one.

    Without it, the state that holds more than half of the good samples.
    """
    total = len(samples.latency_ns)
    usual = np.full(total, np.nan) if usual_hz is None else usual_hz
    parts = [
        _summarise(_part(samples, at), usual[at : at + _CHUNK], rule)
        for at in range(0, max(total, 1), _CHUNK)
    ]
    return _joined(parts) if len(parts) > 1 else parts[0]


def _summarise(samples: Samples, usual_hz: Floats, rule: Rule) -> Nights:
    timed = samples.latency_ns > 0  # False for NaN
    throttled = timed & samples.throttled
    hot = timed & ~throttled & samples.hot(rule)
    good = timed & ~throttled & ~hot
    times = np.where(good, np.log(np.where(timed, samples.latency_ns, 1.0)), np.nan)
    n_measured, n_good = _count(timed), _count(good)

    clocked = (n_good > 0) & np.all(~good | (samples.gpu_hz > 0), axis=1)
    hz = np.where(good & clocked[:, None], samples.gpu_hz, np.nan)
    state = _state(hz, usual_hz, n_good, rule)
    within = np.where(state, times, np.nan)
    modes = modes_of(times)
    inner = modes_of(np.where(clocked[:, None], within, times))
    # A clock that does not explain two modes (memory's, say) leaves the larger one, if it prevails.
    take_slow = clocked & inner.found & (inner.slow_n > inner.fast_n)
    prevails = np.where(take_slow, inner.slow_n, inner.fast_n) >= rule.min_mode_share * (
        inner.fast_n + inner.slow_n
    )
    pool = np.where(clocked[:, None], state, good)
    in_mode = np.where(take_slow[:, None], times > inner.cut[:, None], times <= inner.cut[:, None])
    used = np.where(inner.found[:, None], pool & in_mode, pool)
    n_used = _count(used)

    least = rule.min_in_state
    reason = np.select(
        [
            n_measured < rule.min_samples,
            n_good < least,
            clocked & ~state.any(axis=1),
            inner.found & ~prevails,
            n_used < least,
            np.abs(_drift(np.where(used, times, np.nan), n_used)) > rule.ramp,
        ],
        [
            Reason.FEW_MEASURED,
            Reason.FEW_GOOD,
            Reason.NO_DOMINANT_STATE,
            Reason.TWO_MODES,
            Reason.FEW_IN_STATE,
            Reason.RAMP,
        ],
        Reason.NONE,
    ).astype(np.int8)
    none = reason != Reason.NONE
    value = np.where(clocked, rows.median(np.where(used, times, np.nan)), _percentile(times))
    basis = np.where(none, Basis.NONE, np.where(clocked, Basis.CLOCK_STATE, Basis.PERCENTILE_20))
    return Nights(
        log_ns=np.where(none, np.nan, value),
        basis=basis.astype(np.int8),
        reason=reason,
        clock_hz=rows.median(np.where(used, hz, np.nan)),
        measured=n_measured,
        throttled=_count(throttled),
        hot=_count(hot),
        good=n_good,
        used=n_used,
        modes=modes,
    )


def _state(hz: Floats, usual_hz: Floats, good: Ints, rule: Rule) -> Bools:
    """(series, n): samples of the state that stands for the night; none where no state prevails."""
    at_usual = np.abs(hz / usual_hz[:, None] - 1) <= CLOCK_FLOOR
    low, high = hz[:, :, None], hz[:, None, :]
    inside = (high >= low) & (high <= low * (1 + CLOCK_FLOOR))  # [series, lowest sample, sample]
    best = inside.sum(axis=2).argmax(axis=1)
    dominant = inside[rows.indices(len(hz)), best]
    dominant = dominant & (2 * _count(dominant) > good)[:, None]
    return np.where((_count(at_usual) >= rule.min_in_state)[:, None], at_usual, dominant)


def _drift(times: Floats, count: Ints) -> Floats:
    """Of the last third minus the first, in order of measuring. By a low percentile: without clocks a few
    samples of a slower state are no ramp."""
    known = ~np.isnan(times)
    rank = np.cumsum(known, axis=1) - 1
    third = np.maximum(count // 3, 1)[:, None]
    first = _percentile(np.where(known & (rank < third), times, np.nan))
    last = _percentile(np.where(known & (rank >= count[:, None] - third), times, np.nan))
    return np.nan_to_num(last - first)


def _percentile(times: Floats) -> Floats:
    ranked, count = rows.ordered(times)
    return rows.quantile(ranked, np.zeros_like(count), count, PERCENTILE)


def _count(flags: Bools) -> Ints:
    return np.count_nonzero(flags, axis=1).astype(np.int64)


def _part(samples: Samples, at: int) -> Samples:
    part = slice(at, at + _CHUNK)
    battery = samples.battery_mc
    return Samples(
        samples.latency_ns[part],
        samples.gpu_hz[part],
        samples.temp_mc[part],
        samples.throttled[part],
        battery[part] if battery is not None else None,
    )


def _joined(parts: list[Nights]) -> Nights:
    return Nights(
        log_ns=np.concatenate([p.log_ns for p in parts]),
        basis=np.concatenate([p.basis for p in parts]),
        reason=np.concatenate([p.reason for p in parts]),
        clock_hz=np.concatenate([p.clock_hz for p in parts]),
        measured=np.concatenate([p.measured for p in parts]),
        throttled=np.concatenate([p.throttled for p in parts]),
        hot=np.concatenate([p.hot for p in parts]),
        good=np.concatenate([p.good for p in parts]),
        used=np.concatenate([p.used for p in parts]),
        modes=Modes.joined([p.modes for p in parts]),
    )
