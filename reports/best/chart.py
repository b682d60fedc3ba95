"""The latency–error front of one workload: time to the right, error upwards, both in steps of a factor."""

import math
from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from orchestrator.domain.best import Variant
from reports.numbers import duration, significant
from reports.svg.marks import SHAPES, mark
from reports.svg.picture import Picture
from reports.svg.scale import Scale, around

WIDTH, HEIGHT = 560, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 24, 40
LEAST_DECADES = 1.0
MAX_POINTS = 400
"""The fastest ones, the front and the pick."""
EXACT = 1e-20
"""Where an error of 0 is drawn."""


def shapes_of(precisions: Iterable[str]) -> dict[str, str]:
    """Precision → mark, by name: one mark means one precision in all charts of all SoCs."""
    return {p: SHAPES[n % len(SHAPES)] for n, p in enumerate(sorted(set(precisions)))}


def front_chart(ident: str, variants: Sequence[Variant], shapes: Mapping[str, str], pick: str) -> Markup:
    """``variants``: the fastest first. The pick's mark is filled, those on the front are joined by steps.

    Empty where no variant has a known error.
    """
    known = [v for v in variants if math.isfinite(v.nmse) and v.latency_ns > 0]
    if not known:
        return Markup()
    shown = [v for n, v in enumerate(known) if n < MAX_POINTS or v.front or v.case_id == pick]
    picture = Picture(WIDTH, HEIGHT, "front")
    lows, highs = _ends([math.log10(v.latency_ns) for v in shown], 0.08)
    x = Scale(lows, highs, LEFT, WIDTH - RIGHT)
    low, high = _ends([_log(v.nmse) for v in shown], LEAST_DECADES)
    y = Scale(low, high, HEIGHT - BOTTOM, TOP)
    _axes(picture, x, y)
    steps = [v for v in shown if v.front]
    path = "".join(
        f"{'M' if n == 0 else 'H'}{x.at(math.log10(v.latency_ns)):.1f}"
        f"{' ' if n == 0 else 'V'}{y.at(_log(v.nmse)):.1f}"
        for n, v in enumerate(steps)
    )
    if len(steps) > 1:
        picture.path(path, "step")
    for v in reversed(shown):
        kind = "chosen" if v.case_id == pick else "on" if v.front else "off"
        at = mark(shapes[v.precision], x.at(math.log10(v.latency_ns)), y.at(_log(v.nmse)))
        picture.path(at, kind, f"{duration(v.latency_ns)}, NMSE {significant(v.nmse)}")
    return picture.titled(ident, "Latency and error of each variant", _words(known, steps))


def _axes(picture: Picture, x: Scale, y: Scale) -> None:
    for tick in _ticks(10**x.low, 10**x.high):
        at = x.at(math.log10(tick))
        picture.path(f"M{at:.1f} {TOP}V{HEIGHT - BOTTOM}", "grid")
        picture.text(at, HEIGHT - BOTTOM + 15, duration(tick), "ax", "middle")
    every = max(1, math.ceil((y.high - y.low) / 6))
    for decade in range(math.ceil(y.low), math.floor(y.high) + 1):
        if decade % every == 0:
            picture.path(f"M{LEFT} {y.at(decade):.1f}H{WIDTH - RIGHT}", "grid")
            text = "exact" if 10.0**decade <= EXACT else f"1e{decade}"
            picture.text(LEFT - 6, y.at(decade) + 4, text, "ax", "end")
    picture.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "latency; faster is left", "ax", "middle")
    picture.text(LEFT - 6, TOP - 10, "NMSE", "ax", "end")


def _ticks(low: float, high: float) -> list[float]:
    """Round times, at most about six."""
    scale = Scale(low, high, 0, 1)
    if high < 4 * low:
        return scale.ticks(5)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if high > 1000 * low else (1, 2, 5)
    return [s * 10.0**d for d in decades for s in steps if low <= s * 10.0**d <= high]


def _ends(values: Sequence[float], least: float) -> tuple[float, float]:
    return around(values, least=least, room=0.1)


def _log(nmse: float) -> float:
    return math.log10(max(nmse, EXACT))


def _words(known: Sequence[Variant], front: Sequence[Variant]) -> str:
    parts = [f"{duration(v.latency_ns)} at NMSE {significant(v.nmse)} ({v.precision})" for v in front[:8]]
    more = f" and {len(front) - 8} more" if len(front) > 8 else ""
    return f"{len(known)} variants; on the front, the fastest first: {', '.join(parts)}{more}."
