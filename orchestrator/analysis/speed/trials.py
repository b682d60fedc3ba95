"""Trials as the arrays that a night is summarised from."""

from collections.abc import Sequence

import numpy as np

from orchestrator.analysis.clocks import sample_hz
from orchestrator.analysis.speed.night import Samples
from orchestrator.analysis.speed.rows import Floats
from orchestrator.domain.trial import Sensors, Trial


def samples_of(trials: Sequence[Trial]) -> Samples:
    """One row a trial, by the clock that its timer is trusted with; a row of NaN where it was not timed.

    The runner reads its sensors before each sample and after the last: a sample has the mean clock and the
    higher temperature of the two readings around it. It says once a trial whether the device was throttled.
    """
    times = [t.timing.samples_ns if t.timing is not None else [] for t in trials]
    shape = (len(trials), max([1, *map(len, times)]))
    latency, hz, temp = (np.full(shape, np.nan) for _ in range(3))
    throttled = np.zeros(shape, np.bool_)
    for row, (trial, taken) in enumerate(zip(trials, times, strict=True)):
        n = len(taken)
        latency[row, :n] = taken
        known = sample_hz(taken, trial.sensors)
        hz[row, : len(known)] = known
        temp[row, :n] = _warmest(n, trial.sensors)
        throttled[row, :n] = trial.sensors is not None and trial.sensors.throttled is True
    return Samples(latency, hz, temp, throttled, np.array([_battery(t.sensors) for t in trials], np.float64))


def _battery(sensors: Sensors | None) -> float:
    return np.nan if sensors is None or sensors.battery_mc is None else sensors.battery_mc


def _warmest(samples: int, sensors: Sensors | None) -> Floats:
    read = np.array(sensors.temp_mc if sensors is not None else [], np.float64)
    if len(read) != samples + 1:
        # Not one reading for each: the warmest of all stands for all.
        return np.full(samples, read.max() if len(read) else np.nan)
    return np.maximum(read[:-1], read[1:])
