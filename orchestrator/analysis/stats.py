"""Robust statistics of one trial's raw times. Units: nanoseconds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.domain.trial import Timing

NOISY_SPREAD = 0.10
"""Above this spread (IQR ÷ median) a median is shown as noisy."""

Clock = Literal["gpu", "wall"]


@dataclass(frozen=True, slots=True)
class TimingStats:
    """Five-number summary of the samples that ``Timing.samples_ns`` selects."""

    clock: Clock
    clock_note: str
    """Why the wall clock was used; empty for a trusted GPU timer."""
    n: int
    min_ns: float
    q1_ns: float
    median_ns: float
    q3_ns: float
    max_ns: float

    @property
    def spread(self) -> float:
        """Interquartile range ÷ median."""
        return (self.q3_ns - self.q1_ns) / self.median_ns

    @property
    def noisy(self) -> bool:
        return self.spread > NOISY_SPREAD


_CLOCK_NOTES = {
    "trusted": "",
    "absent": "no GPU timer",
    "disagrees": "GPU timer disagrees with the wall clock",
    "disjoint": "GPU timer was interrupted (disjoint)",
}


def timing_stats(timing: Timing | None) -> TimingStats | None:
    """Summary of a trial's times; None without samples or when the median is not positive.

    A median of 0 ns is a clock that did not run, not a fast kernel.
    """
    if timing is None:
        return None
    return _summary(timing.samples_ns, timing.clock, _CLOCK_NOTES[timing.gpu_timer])


def wall_stats(timing: Timing | None) -> TimingStats | None:
    """By the wall clock, whatever the GPU timer says: what every trial has in common.

    It holds launch overhead, so it compares whole calls and not shaders.
    """
    return None if timing is None else _summary(timing.wall_ns, "wall", "")


def _summary(samples_ns: Sequence[int], clock: Clock, note: str) -> TimingStats | None:
    if not samples_ns:
        return None
    ordered = sorted(samples_ns)
    median = quantile(ordered, 0.5)
    if median <= 0:
        return None
    return TimingStats(
        clock=clock,
        clock_note=note,
        n=len(ordered),
        min_ns=float(ordered[0]),
        q1_ns=quantile(ordered, 0.25),
        median_ns=median,
        q3_ns=quantile(ordered, 0.75),
        max_ns=float(ordered[-1]),
    )


def quantile(ordered: Sequence[float], q: float) -> float:
    """Linear interpolation between closest ranks (Hyndman and Fan's type 7, numpy's default).

    ``ordered`` is ascending and not empty; 0 ≤ q ≤ 1.
    """
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)
