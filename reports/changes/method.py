"""The rule's parameters in words, and what change a night would have shown."""

import math
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.domain.finding import SeriesRow
from reports.changes.model import Parameter, Sensitivity
from reports.numbers import percent, significant

ENDS = (0.01, 0.02, 0.03, 0.05, 0.10, 0.20)
"""Of detectable changes, as ratios minus one."""
_TOLD: Mapping[str, tuple[str, str, str]] = {
    "min_samples": ("samples of a trial, at least", "count", "fewer say nothing"),
    "min_in_state": ("of them in one clock state", "count", "fewer make the night inconclusive"),
    "min_mode_share": ("share in the mode that counts", "share", "where times alone show two modes"),
    "ramp": ("drift inside a trial, at most", "share", "more is a device that was not in one state"),
    "ceiling_mc": ("hottest battery whose samples count", "mc", "those of a warmer phone are left out"),
    "die_ceiling_mc": ("hottest GPU or SoC in a sample", "mc", "hotter ones are left out and counted"),
    "min_shift_series": ("variants for a common shift", "count", "fewer would hide their own change"),
    "window": ("accepted nights in a baseline", "count", "of the same phone and the same code"),
    "min_nights": ("of them at least", "count", "fewer make the night inconclusive"),
    "threshold": ("smallest change that matters", "log", "a kernel may have its own"),
    "q": ("false discovery rate", "share", "of all findings of a night, the share expected to be none"),
    "suspect_p": ("p that asks for a second measurement", "p", "of changed code"),
    "agree_p": ("p of the second phone", "p", "one-sided: below it two phones agree"),
    "again_p": ("p of a second measurement", "p", "of unchanged code"),
    "again_q": ("false discovery rate of its first", "share", "both are of one night"),
    "budget": ("budget of second measurements", "share", "of the night's samples"),
    "least_budget": (
        "samples of second measurements, at least",
        "count",
        "a small farm's share pays for none",
    ),
    "power": ("power of detectable changes", "share", "how often one of that size is found"),
    "scan_nights": ("nights of the weekly scan", "count", "for drift too slow for a single night"),
    "min_segment": ("nights of a segment, at least", "count", "of that scan"),
    "scan_alpha": ("chance of the scan to be wrong", "p", "in a series without change"),
}
"""Parameter → name, unit, meaning."""


def parameters(method: Mapping[str, float]) -> tuple[Parameter, ...]:
    """Those that this list does not know stand by their own name."""
    made: list[Parameter] = []
    for key, value in method.items():
        name, unit, why = _TOLD.get(key, (key.replace("_", " "), "", ""))
        made.append(Parameter(name, _value(value, unit), why))
    return tuple(made)


def _value(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return significant(value)
    match unit:
        case "count":
            return f"{value:.0f}" if value == round(value) else significant(value)
        case "share":
            return percent(value, 0 if round(value * 100, 6) == round(value * 100) else 1)
        case "log":
            return percent(math.expm1(min(value, 20.0)), 1)
        case "mc":
            return f"{value / 1000:g} °C"
        case _:
            return f"{value:.4g}"


def sensitivity(rows: Sequence[SeriesRow]) -> tuple[Sensitivity, ...]:
    """Series by the smallest change that the night would have found with 80 % power; sizes that occur."""
    known = list(_detectable(rows))
    counts: list[tuple[str, int]] = []
    low = 0.0
    for end in ENDS:
        counts.append((f"up to {end * 100:.0f} %", sum(low < v <= end for v in known)))
        low = end
    counts.append((f"above {ENDS[-1] * 100:.0f} %", sum(v > ENDS[-1] for v in known)))
    counts.append(("not known", len(rows) - len(known)))
    return tuple(Sensitivity(label, n, n / len(rows)) for label, n in counts if n)


def _detectable(rows: Iterable[SeriesRow]) -> Iterable[float]:
    for row in rows:
        if math.isfinite(row.detectable) and row.detectable > 0:
            yield math.expm1(min(row.detectable, 20.0))
