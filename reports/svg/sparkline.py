"""A row's history in 120 × 24 pixels: log ratio to the baseline, night by night, 0 in the middle."""

import math
from collections.abc import Sequence

from markupsafe import Markup

from reports.svg.picture import Picture, short

WIDTH, HEIGHT = 120, 24
FLOOR, CEILING = 0.05, 0.5
"""The scale holds at least ±5 % and at most ±50 %: noise looks small, one outlier hides nothing."""


def sparkline(
    history: Sequence[float],
    label: str,
    *,
    stretch: bool = False,
    floor: float = FLOOR,
    ceiling: float = CEILING,
) -> Markup:
    """NaN: not measured that night, a gap. The last night has a dot. ``label`` says it in words.

    ``stretch``: fills the box that the page gives it, whatever its shape.
    """
    picture = Picture(WIDTH, HEIGHT, "sp")
    line, dot = shapes(history, floor, ceiling)
    picture.path(f"M0 {HEIGHT // 2}H{WIDTH}", "z")
    if line:
        picture.path(line, "l")
    if dot:
        picture.path(dot, "d")
    return picture.labelled(label, stretch=stretch)


def shapes(history: Sequence[float], floor: float = FLOOR, ceiling: float = CEILING) -> tuple[str, str]:
    """Paths of the line and of the last night's dot, to a tenth of a percent; table.js draws the same."""
    values = [round(v, 3) if math.isfinite(v) else None for v in history]
    known = [abs(v) for v in values if v is not None]
    if not known:
        return "", ""
    top = min(max([floor, *known]), ceiling)
    step = (WIDTH - 8) / max(len(values) - 1, 1)
    points = [
        None if v is None else (4 + i * step, 12 - 10 * max(-1.0, min(1.0, v / top)))
        for i, v in enumerate(values)
    ]
    d = ""
    for i, point in enumerate(points):
        if point is None:
            continue
        before, after = i > 0 and points[i - 1] is not None, i + 1 < len(points) and points[i + 1] is not None
        d += f"{'L' if before else 'M'}{short(point[0])} {short(point[1])}"
        d += "" if before or after else "h1"  # a night between two gaps would have no line
    last = points[-1]
    return d, f"M{short(last[0])} {short(last[1])}h0" if last else ""
