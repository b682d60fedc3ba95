"""Raw samples of a phone, last baseline night beside tonight, each with the state in which it was taken."""

import math
from collections.abc import Mapping, Sequence

from reports.changes.evidence import Night
from reports.changes.model import Chart
from reports.changes.words import long_night
from reports.svg.scale import around
from reports.svg.strip import Sample, counts, sample_strip, sensor_range, sensor_strip

SAME_CLOCK = 0.05
"""Readings this close to the night's clock are of its state; as analysis/clocks.py has it."""
LEAST_RANGE = 0.04
"""Of the axis of samples, as a share of the largest one: ticks with three digits differ."""


def strips(
    anchor: str,
    seen: Sequence[Night],
    device: str,
    run_id: str,
    since: str,
    ceiling_c: float,
    names: Mapping[str, str],
) -> tuple[tuple[str, tuple[Chart, ...]], ...]:
    """Nothing where no samples are kept of tonight. ``ceiling_c``: NaN where the method has none."""
    own = [n for n in seen if n.device_id == device and n.samples_ns]
    after = next((n for n in reversed(own) if n.run_id == run_id), None)
    if after is None:
        return ()
    earlier = [n for n in own if n.run_id < (since or run_id)]
    shown = ([("before", earlier[-1])] if earlier else []) + [("after", after)]
    every = [v for _, n in shown for v in n.samples_ns if math.isfinite(v)]
    low, high = around(every, least=LEAST_RANGE * max(every, default=0.0))
    made: list[tuple[str, tuple[Chart, ...]]] = []
    for when, n in shown:
        marked = states(n, ceiling_c)
        caption = f"{when.capitalize()}: {names.get(device, device)}, {long_night(n.run_id)}"
        ident = f"{anchor}-{when}"
        charts = [Chart(counts(marked), sample_strip(ident, f"Samples {when}", marked, low, high))]
        if _some(n.gpu_hz):
            mhz = [v / 1e6 for v in n.gpu_hz]
            told = f"GPU clock, {sensor_range(mhz, 'MHz', 0)}"
            charts.append(Chart(told, sensor_strip(f"{ident}-c", f"GPU clock {when}", mhz, "MHz", 0)))
        if _some(n.temp_c):
            picture = sensor_strip(f"{ident}-k", f"Temperature {when}", n.temp_c, "°C", 1)
            charts.append(Chart(f"Temperature, {sensor_range(n.temp_c, '°C', 1)}", picture))
        if not _some(n.gpu_hz):
            charts[0] = Chart(f"{charts[0].caption}; the device shows no clock", charts[0].picture)
        made.append((caption, tuple(charts)))
    return tuple(made)


def _some(readings: Sequence[float]) -> bool:
    return any(math.isfinite(v) for v in readings)


def states(n: Night, ceiling_c: float) -> list[Sample]:
    """A trial's samples; the device says of a whole trial whether it throttled."""
    made: list[Sample] = []
    for i, latency in enumerate(n.samples_ns):
        hz = n.gpu_hz[i] if n.gpu_hz else math.nan
        temp = n.temp_c[i] if n.temp_c else math.nan
        if n.throttled:
            state = "throttled"
        elif temp > ceiling_c:
            state = "too hot"
        elif math.isfinite(hz) and n.clock_hz > 0 and abs(hz / n.clock_hz - 1) > SAME_CLOCK:
            state = "other clock"
        else:
            state = "counted"
        made.append(Sample(latency, state))
    return made
