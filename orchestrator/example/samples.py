"""The example's noise: nights, clock states and heat, as the simulation of docs/statistics.md has them."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from orchestrator.domain.trial import Sensors, Timing
from orchestrator.example.fleet import Chip

NIGHT_SD = 0.015
SAMPLE_SD = 0.02
RHO = 0.5
"""Between one sample and the next."""
SLOW_SHARE = 0.2
PHONE_SD = 0.06
SAMPLES = 20


@dataclass(frozen=True, slots=True)
class Weather:
    """Of one phone in one night."""

    shift: float
    """Log factor of all its cases together."""
    start_mc: int
    """Temperature at the night's start, in thousandths of a degree."""


def weather(random: Generator) -> Weather:
    return Weather(float(random.normal(0, NIGHT_SD)), int(random.normal(31_000, 900)))


def measure(
    random: Generator,
    chip: Chip,
    base_ns: float,
    sky: Weather,
    progress: float,
    factor: float,
    count: int = SAMPLES,
) -> tuple[Timing, Sensors]:
    """``count`` samples of a case that takes ``base_ns`` in the working clock state of an average phone.

    Args:
        progress: 0 at the night's start, 1 at its end: a phone gets warm.
        factor: of what changed, and of this phone.
    """
    noise = np.empty(count)
    noise[0] = random.normal(0, SAMPLE_SD)
    for n in range(1, count):
        noise[n] = RHO * noise[n - 1] + random.normal(0, SAMPLE_SD * np.sqrt(1 - RHO**2))
    fast, slow = chip.clock_mhz
    begins = int(random.integers(0, count))
    in_slow = np.zeros(count, np.bool_)
    if random.random() < 2 * SLOW_SHARE:  # a stretch of half the samples, in two trials of five
        in_slow[begins : begins + count // 2] = True
    in_slow &= np.cumsum(in_slow) <= count // 2 - 2
    times = base_ns * factor * np.exp(sky.shift + noise) * np.where(in_slow, fast / slow, 1.0)
    clocks = [int(1e6 * (slow if s else fast)) for s in in_slow]
    warm = sky.start_mc + int(6_000 * progress)
    temps = [warm + int(random.normal(0, 150)) for _ in range(count + 1)]
    wall = times * 1.02 + 40_000
    timing = Timing(
        compile_ns=[int(random.normal(38e6, 2e6))],
        first_ns=int(times[0] * 1.4),
        wall_ns=[int(t) for t in wall],
        gpu_ns=[int(t) for t in times],
        gpu_timer="trusted",
        slope_ns=int(np.median(times)),
        slope_n=8,
    )
    return timing, Sensors(gpu_hz=[*clocks, clocks[-1]], temp_mc=temps, throttled=False)
