"""Numbers as people read them: three significant digits, units beside them, nothing invented."""

import math
from collections.abc import Sequence

from orchestrator.analysis.numerics import ToleranceUse
from orchestrator.analysis.stats import TimingStats

DASH = "–"
"""No value: not measured, or not defined for this row."""


def significant(value: float | None, digits: int = 3) -> str:
    """``0.000123``, ``1.34``, ``105``; exponents outside 1e-3 … 1e6; ``–`` for None."""
    if value is None:
        return DASH
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "NaN")
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e6:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    # A carry (0.9996 → 1.00) changes the exponent: take it from the rounded value.
    exponent = int(f"{value:.{digits - 1}e}".split("e")[1])
    return f"{value:.{max(0, digits - 1 - exponent)}f}"


def units(value: float) -> str:
    """ULP: whole below a million when it is whole."""
    return f"{value:.0f}" if math.isfinite(value) and value == round(value) < 1e6 else significant(value)


def plain(value: float) -> str:
    """A tensor element: nine digits, enough to tell float32 values apart."""
    return f"{value:.9g}" if math.isfinite(value) else significant(value)


def duration(ns: float | None) -> str:
    """With the unit that fits: ``812 ns``, ``16.3 ms``, ``2.10 s``."""
    if ns is None:
        return DASH
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{significant(ns / size)} {unit}"
    return f"{significant(ns)} ns"


def milliseconds(ns: float | None, decimals: int) -> str:
    """For columns whose decimal points must align."""
    return DASH if ns is None else f"{ns / 1e6:.{decimals}f}"


def decimals_for(low_ns: float) -> int:
    """Decimals that give the smallest time of a column three significant digits (0 to 6)."""
    if low_ns <= 0:
        return 3
    return min(6, max(0, 2 - math.floor(math.log10(low_ns / 1e6))))


def percent(value: float | None, decimals: int = 1) -> str:
    if value is None:
        return DASH
    return f"{value * 100:.{decimals}f} %" if math.isfinite(value) else significant(value)


def ratio(value: float | None) -> str:
    """``×1.03``; two decimals up to 100."""
    if value is None:
        return DASH
    return f"×{value:.2f}" if value < 100 else f"×{significant(value)}"


def megabytes(count: int) -> str:
    """10⁶ bytes."""
    return significant(count / 1e6)


def rate(per_s: float, unit: str, digits: int = 3) -> str:
    """Per second with the decimal prefix that fits: ``4.27 TB/s``, ``51.2 TFLOP/s``, ``812 MB/s``."""
    for prefix, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if per_s >= size:
            return f"{significant(per_s / size, digits)} {prefix}{unit}"
    return f"{significant(per_s, digits)} {unit}"


def binary_size(nbytes: int) -> str:
    """``64 KiB``, ``256 MiB``; buffers come in powers of two."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if nbytes >= size:
            return f"{nbytes / size:.4g} {unit}"
    return f"{nbytes} B"


def tolerance_share(use: ToleranceUse | None) -> str:
    """``21 %``, ``≥ 21 %`` for a lower bound, ``×745`` far beyond it, ``∞`` for a non-finite error.

    NMSE is named when its share is the larger one.
    """
    if use is None:
        return DASH
    if not math.isfinite(use.share):
        return "∞"
    text = f"{significant(use.share * 100, 2)} %" if use.share < 10 else f"×{significant(use.share)}"
    return ("" if use.exact else "≥ ") + text + (" nmse" if use.by == "nmse" else "")


def position(coordinates: Sequence[int] | None, index: int | None = None) -> str:
    """``[3, 17, 42]``; the flat index where the shape is unknown."""
    if coordinates is not None:
        return "[" + ", ".join(str(c) for c in coordinates) + "]"
    return DASH if index is None else f"#{index}"


def fact(name: str, value: str) -> tuple[str, str]:
    """A reading with the unit of its name: ``battery_temp_mc 33400`` → ``battery temp``, ``33.4 °C``."""
    for suffix, scale, unit in (("_mc", 1e-3, "°C"), ("_percent", 1.0, "%")):
        digits = value.removeprefix("-")
        if name.endswith(suffix) and digits.isascii() and digits.isdecimal():
            return name.removesuffix(suffix).replace("_", " "), f"{int(value) * scale:g} {unit}"
    return name.replace("_", " "), value


def bar(stats: TimingStats, low_ns: float, high_ns: float, width: int = 90) -> tuple[float, ...]:
    """Positions of min, q1, median, q3 and max on a logarithmic scale from ``low_ns`` to ``high_ns``."""
    span = math.log(high_ns / low_ns) if 0 < low_ns < high_ns else 0.0
    values = (stats.min_ns, stats.q1_ns, stats.median_ns, stats.q3_ns, stats.max_ns)
    if not span:
        return tuple(width / 2 for _ in values)
    return tuple(round(1 + (width - 2) * math.log(max(v, low_ns) / low_ns) / span, 1) for v in values)


HEAT_STEPS = (1.05, 1.15, 1.35, 1.75, 2.5)
"""Upper ends of a heatmap's shades: time ÷ the fastest cell's."""


def heat_step(ratio_to_best: float) -> int:
    """0 (fastest) … 5."""
    return sum(ratio_to_best > end for end in HEAT_STEPS)
