"""A finding's history: change against each phone's own baseline, night by night, with events marked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from reports.changes.events import Event
from reports.changes.words import night, signed, tick
from reports.numbers import significant
from reports.svg.marks import SHAPES, mark
from reports.svg.picture import Picture
from reports.svg.scale import Scale, around, percent_ticks

WIDTH, HEIGHT = 660, 232
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 30, 34
LEAST = 0.08
"""Between the ends of an axis of log ratios."""
LEAST_DECADES = 0.62
"""Of NMSE: from half to double the baseline's, so that noise looks small and two ticks have room."""
MAX_LETTERS = 26


@dataclass(frozen=True, slots=True)
class Line:
    """One phone; values are log ratios to its own baseline, NaN where it was not measured."""

    name: str
    values: tuple[float, ...]


def history_chart(
    ident: str,
    title: str,
    runs: Sequence[str],
    lines: Sequence[Line],
    events: Sequence[Event],
    since: str,
    unit: str = "latency",
) -> Markup:
    """Events have letters that the list beside the chart explains; nights without a number a cross below."""
    picture = Picture(WIDTH, HEIGHT, "hist")
    every = [v for line in lines for v in line.values]
    low, high = around([*every, 0.0], least=LEAST if unit == "latency" else LEAST_DECADES)
    y = Scale(low, high, HEIGHT - BOTTOM, TOP)
    x = Scale(0, max(len(runs) - 1, 1), LEFT + 8, WIDTH - RIGHT - 8)
    step = (x.end - x.start) / max(len(runs) - 1, 1)
    if since in runs:
        start = max(x.at(runs.index(since)) - step / 2, LEFT)
        picture.rect(start, TOP, WIDTH - RIGHT - start, HEIGHT - BOTTOM - TOP, "after")
    for value in percent_ticks(y) if unit == "latency" else _decades(y):
        picture.path(f"M{LEFT} {y.at(value):.1f}H{WIDTH - RIGHT}", "zero" if abs(value) < 1e-9 else "grid")
        label = tick(value) if unit == "latency" else f"×{_short(10**value)}"
        picture.text(LEFT - 6, y.at(value) + 4, label, "ax", "end")
    every_nth = max(1, math.ceil(len(runs) / 10))
    for i, run in enumerate(runs):
        if (len(runs) - 1 - i) % every_nth == 0:
            # On a narrow screen the texts are larger, and there is room for every second one.
            second = (len(runs) - 1 - i) // every_nth % 2
            picture.text(x.at(i), HEIGHT - 6, night(run), "ax alt" if second else "ax", "middle")
    for event in events:
        if event.kind == "missing":
            picture.path(
                mark("cross", x.at(event.at), HEIGHT - BOTTOM + 8),
                "gone",
                f"{night(runs[event.at])}: not measured",
            )
    # Several events of one night share a line; their letters stand beside each other.
    per_night: dict[int, int] = {}
    for letter, event in lettered(events):
        at = max(x.at(event.at) - step / 2, LEFT)
        nth = per_night.get(event.at, 0)
        per_night[event.at] = nth + 1
        if not nth:
            picture.path(f"M{at:.1f} {TOP - 10}V{HEIGHT - BOTTOM}", "event")
        picture.text(at + 11 * nth, TOP - 14, letter, "letter", "middle")
    for number, line in enumerate(lines):
        kind = f"s{number % 4}"
        points = [(x.at(i), y.at(v)) if math.isfinite(v) else None for i, v in enumerate(line.values)]
        picture.line(points, f"line {kind}")
        shape = SHAPES[number % len(SHAPES)]
        for i, point in enumerate(points):
            if point is not None:
                picture.path(
                    mark(shape, *point),
                    f"mark {kind}",
                    f"{line.name}, {night(runs[i])}: {_value(line.values[i], unit)}",
                )
    return picture.titled(ident, title, _description(runs, lines, events, since, unit))


def _decades(y: Scale) -> list[float]:
    """Powers of ten, and 2 and 5 times them where that gives few lines."""
    low, high = math.floor(y.low), math.ceil(y.high)
    factors = (1.0, 2.0, 5.0) if high - low <= 2 else (1.0,)
    every = (d + math.log10(f) for d in range(low, high + 1) for f in factors)
    inside = [t for t in every if y.low - 1e-9 <= t <= y.high + 1e-9]
    return inside[:: max(1, math.ceil(len(inside) / 8))]


def _short(factor: float) -> str:
    """``2``, ``0.1``, ``5e6``: there is little room beside an axis."""
    return (
        significant(factor, 1)
        if 1e-3 <= factor < 1e4
        else f"{factor:.0e}".replace("e+0", "e").replace("e-0", "e-")
    )


def lettered(events: Sequence[Event]) -> list[tuple[str, Event]]:
    """All but missing nights, as the chart and its list name them."""
    told = [e for e in events if e.kind != "missing"][:MAX_LETTERS]
    return [(chr(ord("A") + i), e) for i, e in enumerate(told)]


def _description(
    runs: Sequence[str], lines: Sequence[Line], events: Sequence[Event], since: str, unit: str
) -> str:
    what = "Change of latency against the own baseline" if unit == "latency" else "NMSE against the baseline"
    parts = [f"{what}, {len(runs)} nights."]
    for line in lines:
        known = [v for v in line.values if math.isfinite(v)]
        last = f"last {_value(known[-1], unit)}" if known else "never measured"
        parts.append(f"{line.name}: {len(known)} nights, {last}.")
    if since in runs:
        parts.append(f"The change is there since {night(since)}.")
    missing = sum(e.kind == "missing" for e in events)
    if missing:
        parts.append(f"{missing} nights without a measurement.")
    return " ".join(parts)


def _value(value: float, unit: str) -> str:
    return signed(value) if unit == "latency" else f"×{10**value:.3g}"
