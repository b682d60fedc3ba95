"""Trials whose samples fall in two clock states: one median would hide both (field case G4-05).

Found in the times alone; the clock that the device showed names the states. Nothing is judged here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from typing import TypeVar

from orchestrator.analysis.stats import quantile
from orchestrator.domain.trial import Sensors, Timing, Trial

MIN_SHARE = 0.10
"""Of the samples in the smaller state; and never a single one, which is an outlier."""
MIN_STEP = 0.15
"""The slower state's mean above the faster one's."""
MIN_CLEARANCE = 4.0
"""The gap between the states, in multiples of the spread inside them."""
CLOCK_FLOOR = 0.05
"""A clock that the device shows within 5 % counts as one clock."""
PACE_FLOOR = 1.25
"""Latencies of one canary further apart than this factor show a device at different speeds."""
_FEW = 5
"""Below as many samples the spread of a state is its range: quartiles would hide most of it."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClockState:
    """Samples of one mode of the times."""

    samples: int
    mean_ns: float
    hz: float | None
    """Median of the GPU's clock around these samples; None where the device shows none."""


@dataclass(frozen=True, slots=True)
class ClockFacts:
    """What one trial's samples and sensors say about the clock while it was timed."""

    states: tuple[ClockState, ...] = ()
    """Two, the slower first; empty where the times have one mode."""
    low_hz: int = 0
    high_hz: int = 0
    """Of all readings; 0 where there are none."""
    throttled_samples: int = 0
    """All samples of a trial that was throttled at any reading, as the runner says it once a trial."""

    @property
    def clock_moved(self) -> bool:
        """Its median stands for no one clock."""
        return bool(self.states) or self.range_moved

    @property
    def range_moved(self) -> bool:
        return self.high_hz > self.low_hz * (1 + CLOCK_FLOOR)


def clock_facts(timing: Timing | None, sensors: Sensors | None) -> ClockFacts:
    """Of one trial; nothing where it was not timed."""
    if timing is None or not timing.samples_ns:
        return ClockFacts()
    samples = timing.samples_ns
    known = [hz for hz in sensors.gpu_hz if hz > 0] if sensors is not None else []
    return ClockFacts(
        states=_states(samples, sample_hz(samples, sensors)),
        low_hz=min(known, default=0),
        high_hz=max(known, default=0),
        throttled_samples=len(samples) if sensors is not None and sensors.throttled else 0,
    )


def fastest_hz(timing: Timing | None, sensors: Sensors | None) -> float:
    """The clock around the fastest sample; 0 where it is not known."""
    samples = timing.samples_ns if timing is not None else []
    return min(zip(samples, sample_hz(samples, sensors), strict=False), default=(0, 0.0))[1]


def trial_clock(trial: Trial) -> ClockFacts:
    return clock_facts(trial.timing, trial.sensors)


def clock_moved(trial: Trial) -> bool:
    return trial_clock(trial).clock_moved


def one_clock(trials: Iterable[Trial]) -> bool:
    """No trial's clock moved, and no two of them were timed at different ones, as far as devices show it."""
    facts = [trial_clock(t) for t in trials]
    known = [f for f in facts if f.high_hz]
    low, high = min((f.low_hz for f in known), default=0), max((f.high_hz for f in known), default=0)
    return not any(f.clock_moved for f in facts) and high <= low * (1 + CLOCK_FLOOR)


def steady(items: Iterable[T], trial: Callable[[T], Trial]) -> list[T]:
    """Those whose clock stood still, among which a fastest one may be sought; all where it did in none."""
    known = list(items)
    return [i for i in known if not clock_moved(trial(i))] or known


def split(samples_ns: Sequence[int]) -> tuple[list[int], list[int]] | None:
    """The two modes, the faster first; None for one mode, a ramp, noise or an outlier.

    The largest gap between sorted samples splits them. Gaps that would leave too few on a side are left out,
    so that an outlier neither makes a mode nor hides one.
    """
    ordered = sorted(samples_ns)
    least = max(2, -(-len(ordered) // round(1 / MIN_SHARE)))
    cuts = range(least, len(ordered) - least + 1)
    cut = max(cuts, key=lambda i: ordered[i] - ordered[i - 1], default=0)
    if cut == 0 or ordered[0] <= 0:
        return None
    fast, slow = ordered[:cut], ordered[cut:]
    gap = slow[0] - fast[-1]
    step = fmean(slow) >= (1 + MIN_STEP) * fmean(fast)
    return (fast, slow) if step and gap > MIN_CLEARANCE * max(_spread(fast), _spread(slow)) else None


def sample_hz(samples: Sequence[int], sensors: Sensors | None) -> list[float]:
    """The clock of each sample: one reading comes before each and one after the last, so that a sample lies
    between two. Empty where readings are missing."""
    read = sensors.gpu_hz if sensors is not None else []
    whole = len(read) == len(samples) + 1 and all(hz > 0 for hz in read)
    return [(a + b) / 2 for a, b in pairwise(read)] if whole else []


def _states(samples: Sequence[int], hz: Sequence[float]) -> tuple[ClockState, ...]:
    modes = split(samples)
    if modes is None:
        return ()
    fast, slow = modes

    def state(mode: Sequence[int]) -> ClockState:
        seen = [h for ns, h in zip(samples, hz, strict=False) if mode[0] <= ns <= mode[-1]]
        return ClockState(len(mode), fmean(mode), median(seen) if seen else None)

    return (state(slow), state(fast))


def _spread(ordered: Sequence[int]) -> float:
    if len(ordered) < _FEW:
        return ordered[-1] - ordered[0]
    return quantile(ordered, 0.75) - quantile(ordered, 0.25)
