"""Raw samples of one trial in the order of measuring, told apart by the state in which they were taken."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from reports.numbers import duration
from reports.svg.marks import mark
from reports.svg.picture import Picture
from reports.svg.scale import Scale

WIDTH, HEIGHT = 320, 128
LEFT, RIGHT, TOP, BOTTOM = 60, 8, 10, 20
STATE_SHAPES = {"counted": "circle", "other clock": "square", "too hot": "triangle", "throttled": "cross"}


@dataclass(frozen=True, slots=True)
class Sample:
    latency_ns: float
    state: str
    """A key of ``STATE_SHAPES``."""


def sample_strip(ident: str, title: str, samples: Sequence[Sample], low_ns: float, high_ns: float) -> Markup:
    """``low_ns`` and ``high_ns`` are shared by the strips that stand side by side."""
    picture = Picture(WIDTH, HEIGHT, "strip")
    y = Scale(low_ns, high_ns, HEIGHT - BOTTOM, TOP)
    x = Scale(0, max(len(samples) - 1, 1), LEFT + 8, WIDTH - RIGHT - 6)
    for tick in y.ticks(3):
        picture.path(f"M{LEFT} {y.at(tick):.1f}H{WIDTH - RIGHT}", "grid")
        picture.text(LEFT - 6, y.at(tick) + 4, duration(tick), "ax", "end")
    counted = sorted(s.latency_ns for s in samples if s.state == "counted" and math.isfinite(s.latency_ns))
    if counted:
        middle = (counted[(len(counted) - 1) // 2] + counted[len(counted) // 2]) / 2
        picture.path(f"M{LEFT} {y.at(middle):.1f}H{WIDTH - RIGHT}", "median")
    for i, sample in enumerate(samples):
        if math.isfinite(sample.latency_ns):
            kind = sample.state.replace(" ", "-")
            title_ = f"sample {i + 1}: {duration(sample.latency_ns)}, {sample.state}"
            picture.path(mark(STATE_SHAPES[sample.state], x.at(i), y.at(sample.latency_ns)), kind, title_)
    picture.text((LEFT + WIDTH) / 2, HEIGHT - 4, "samples in the order of measuring", "ax", "middle")
    return picture.titled(
        ident, title, f"{counts(samples)}. Between {duration(low_ns)} and {duration(high_ns)}."
    )


def counts(samples: Sequence[Sample]) -> str:
    """``16 counted, 4 other clock``"""
    found = Counter(s.state for s in samples)
    return ", ".join(f"{found[state]} {state}" for state in STATE_SHAPES if found[state]) or "no samples"


def sensor_strip(ident: str, title: str, values: Sequence[float], unit: str, digits: int) -> Markup:
    """Clock or temperature through a trial; its ends are named where there is room (:func:`sensor_range`
    says them). One of ``values`` at least is finite."""
    width, height, left = WIDTH, 46, LEFT
    picture = Picture(width, height, "strip")
    known = [v for v in values if math.isfinite(v)]
    low, high = min(known), max(known)
    room = max((high - low) * 0.1, abs(high) * 0.01, 1e-9)
    y = Scale(low - room, high + room, height - 8, 8)
    x = Scale(0, max(len(values) - 1, 1), left + 8, width - RIGHT - 6)
    picture.line([(x.at(i), y.at(v)) if math.isfinite(v) else None for i, v in enumerate(values)], "sense")
    if y.at(low) - y.at(high) > 13:
        for end in (high, low):
            picture.text(left - 6, y.at(end) + 4, f"{end:.{digits}f} {unit}", "ax", "end")
    said = f"Between {low:.{digits}f} and {high:.{digits}f} {unit} over {len(known)} samples."
    return picture.titled(ident, title, said)


def sensor_range(values: Sequence[float], unit: str, digits: int) -> str:
    """``35.2–36.4 °C``; ``903 MHz`` where it stays."""
    known = [v for v in values if math.isfinite(v)]
    low, high = (f"{v:.{digits}f}" for v in (min(known), max(known)))
    return f"{low} {unit}" if low == high else f"{low}–{high} {unit}"
