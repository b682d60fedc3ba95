"""Positions along an axis, and round values for its ticks."""

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """``low`` … ``high`` to ``start`` … ``end`` in pixels; equal ends lie in the middle."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        if self.high == self.low:
            return (self.start + self.end) / 2
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)

    def ticks(self, count: int = 4) -> list[float]:
        """Round values inside, about ``count`` and two at least: steps of 1, 2 or 5."""
        span = self.high - self.low
        if not span > 0:
            return [self.low]
        raw = span / count
        size = 10.0 ** math.floor(math.log10(raw))
        wide = [s * size for s in (10, 5, 2, 1, 0.5, 0.2)]
        start = max(i for i, step in enumerate(wide) if step >= raw * 0.999)
        each = [self._multiples(step) for step in wide[start:]]
        return next((found for found in each if len(found) > 1), each[-1])

    def _multiples(self, step: float) -> list[float]:
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def percent_ticks(scale: Scale, count: int = 4) -> list[float]:
    """Of an axis of log ratios: where the change is a round number of percent."""
    ratios = Scale(math.expm1(min(scale.low, 20.0)), math.expm1(min(scale.high, 20.0)), 0, 1)
    return [math.log1p(t) for t in ratios.ticks(count) if t > -1]


def around(values: Iterable[float], least: float = 0.0, room: float = 0.08) -> tuple[float, float]:
    """Ends that hold all finite values with some room, at least ``least`` apart; (0, 1) without any."""
    finite = [v for v in values if math.isfinite(v)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    extra = max((high - low) * room, (least - (high - low)) / 2, 0.0)
    return low - extra, high + extra
