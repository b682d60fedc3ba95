"""A phone's nights: what all its variants did together, and its sentinels beside that."""

import math
from collections.abc import Sequence

from markupsafe import Markup

from reports.changes.words import history_words, night, tick
from reports.svg.marks import mark
from reports.svg.picture import Picture
from reports.svg.scale import Scale, around, percent_ticks

WIDTH, HEIGHT = 360, 104
LEFT, RIGHT, TOP, BOTTOM = 52, 10, 10, 20


def shift_chart(
    ident: str, name: str, runs: Sequence[str], shift: Sequence[float], sentinels: Sequence[float],
    changes: Sequence[int],
) -> Markup:  # fmt: skip
    """Solid line with circles: common shift. Dashed with squares: sentinels. ``changes``: nights of another
    environment, marked by a line."""
    picture = Picture(WIDTH, HEIGHT, "shift")
    y = Scale(*around([*shift, *sentinels, 0.0], least=0.06), HEIGHT - BOTTOM, TOP)
    count = max(len(shift), len(sentinels), len(runs), 2)
    x = Scale(0, count - 1, LEFT + 6, WIDTH - RIGHT - 6)
    for value in percent_ticks(y, 3):
        picture.path(f"M{LEFT} {y.at(value):.1f}H{WIDTH - RIGHT}", "zero" if abs(value) < 1e-9 else "grid")
        picture.text(LEFT - 6, y.at(value) + 4, tick(value), "ax", "end")
    for at in changes:
        picture.path(f"M{x.at(at - 0.5):.1f} {TOP}V{HEIGHT - BOTTOM}", "event")
    for values, kind, shape in ((sentinels, "sentinel", "square"), (shift, "common", "circle")):
        points = [(x.at(i), y.at(v)) if math.isfinite(v) else None for i, v in enumerate(values)]
        picture.line(points, f"line {kind}")
        for i, point in enumerate(points):
            if point is not None and (i == len(points) - 1 or count <= 20):
                picture.path(mark(shape, *point), f"mark {kind}")
    if runs:
        picture.text(LEFT, HEIGHT - 4, night(runs[0]), "ax")
        picture.text(WIDTH - RIGHT, HEIGHT - 4, night(runs[-1]), "ax", "end")
    said = f"Common shift: {history_words(shift)}. Sentinels: {history_words(sentinels)}."
    return picture.titled(ident, f"Nights of {name}", said)
