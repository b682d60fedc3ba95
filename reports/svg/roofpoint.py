"""Where one variant lay under its device's ceilings, before and after."""

import math
from dataclasses import dataclass

from markupsafe import Markup

from reports.numbers import percent, rate
from reports.svg.marks import mark
from reports.svg.picture import Picture
from reports.svg.scale import Scale

WIDTH, HEIGHT = 320, 180
LEFT, RIGHT, TOP, BOTTOM = 70, 12, 12, 34


@dataclass(frozen=True, slots=True)
class RoofPoint:
    intensity: float
    """FLOP per compulsory byte; finite and above 0."""
    before: float
    """FLOP/s; NaN: unknown."""
    after: float
    share_before: float
    share_after: float
    """Of the ceiling that binds."""
    ceiling: str
    bandwidth: float
    """Bytes/s of DRAM; 0: not measured."""
    peak: float
    """FLOP/s of compute; 0: not measured."""


def roof_point(ident: str, found: RoofPoint) -> Markup:
    picture = Picture(WIDTH, HEIGHT, "roofpoint")
    ridge = found.peak / found.bandwidth if found.peak and found.bandwidth else found.intensity
    reached = [v for v in (found.before, found.after) if v > 0]
    tops = [found.peak or found.bandwidth * found.intensity, *reached]
    xs = [found.intensity, ridge]
    x = Scale(math.log10(min(xs) / 4), math.log10(max(xs) * 4), LEFT, WIDTH - RIGHT)
    low = min([*reached, found.bandwidth * min(xs) / 2 or math.inf, found.peak or math.inf])
    y = Scale(math.log10(low / 2), math.log10(max(tops) * 1.6), HEIGHT - BOTTOM, TOP)
    for decade in range(math.ceil(y.low), math.floor(y.high) + 1):
        picture.path(f"M{LEFT} {y.at(decade):.1f}H{WIDTH - RIGHT}", "grid")
        picture.text(LEFT - 6, y.at(decade) + 4, rate(10.0**decade, "", digits=1), "ax", "end")
    for decade in range(math.ceil(x.low), math.floor(x.high) + 1):
        picture.path(f"M{x.at(decade):.1f} {TOP}V{HEIGHT - BOTTOM}", "grid")
        picture.text(x.at(decade), HEIGHT - BOTTOM + 14, f"{10.0**decade:g}", "ax", "middle")
    picture.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, "FLOP per compulsory byte", "ax", "middle")
    if found.bandwidth:
        left = max(x.low, y.low - math.log10(found.bandwidth))
        right = math.log10(ridge) if found.peak else x.high
        ends = [(x.at(i), y.at(min(i + math.log10(found.bandwidth), y.high))) for i in (left, right)]
        picture.line(ends, "dram")
    if found.peak:
        start = math.log10(ridge) if found.bandwidth else x.low
        level = y.at(math.log10(found.peak))
        picture.line([(x.at(start), level), (x.end, level)], "compute")
    at = x.at(math.log10(found.intensity))
    if found.before > 0:
        picture.path(
            mark("circle", at, y.at(math.log10(found.before))),
            "was",
            f"before: {rate(found.before, 'FLOP/s')}",
        )
    if found.after > 0:
        picture.path(
            mark("diamond", at, y.at(math.log10(found.after))), "now", f"after: {rate(found.after, 'FLOP/s')}"
        )
    return picture.titled(ident, "Place under the roofline", roof_words(found))


def roof_words(found: RoofPoint) -> str:
    """``63 % of DRAM bandwidth before, 55 % after, at 4.1 FLOP/B``"""
    shares = [
        f"{percent(share, 0 if share >= 0.1 else 1)} {when}"
        for share, when in ((found.share_before, "before"), (found.share_after, "after"))
        if math.isfinite(share)
    ]
    return f"Of {found.ceiling}: {', '.join(shares)}; at {found.intensity:.3g} FLOP per compulsory byte"
