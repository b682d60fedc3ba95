"""Phones over the nights, and what change the night would have shown."""

import math
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.domain.finding import DeviceNight, SeriesRow
from reports.changes.model import PhoneNights, Sensitivity
from reports.changes.words import night
from reports.svg.shift import shift_chart

ENDS = (0.01, 0.02, 0.03, 0.05, 0.10, 0.20)
"""Of detectable changes, as ratios minus one."""
MAX_ENVIRONMENTS = 8


def phone_nights(
    devices: Iterable[DeviceNight], runs: Sequence[str], names: Mapping[str, str], prefix: str
) -> tuple[PhoneNights, ...]:
    made: list[PhoneNights] = []
    for number, device in enumerate(devices):
        own = names.get(device.device_id, device.device_id)
        changed = _changed(device.environment)
        # Names of nights stand at the right end, as the values do.
        axis = runs[-max(len(device.shift), len(device.sentinels), 1) :]
        picture = shift_chart(
            f"{prefix}-p{number}", own, axis, device.shift, device.sentinels, [i for i, _ in changed[1:]]
        )
        told = tuple((night(axis[i]) if i < len(axis) else "", text) for i, text in changed)
        made.append(PhoneNights(device, own, picture, told[-MAX_ENVIRONMENTS:]))
    return tuple(made)


def _changed(environment: Sequence[str]) -> list[tuple[int, str]]:
    """The first night's and every later one that differs; nights without the phone say nothing."""
    made: list[tuple[int, str]] = []
    for i, text in enumerate(environment):
        if text and (not made or made[-1][1] != text):
            made.append((i, text))
    return made


def sensitivity(rows: Sequence[SeriesRow]) -> tuple[Sensitivity, ...]:
    """Series by the smallest change that the night would have found with 80 % power."""
    known = [
        math.expm1(min(r.detectable, 20.0)) for r in rows if math.isfinite(r.detectable) and r.detectable > 0
    ]
    counts: list[tuple[str, int]] = []
    low = 0.0
    for end in ENDS:
        counts.append((f"up to {end * 100:.0f} %", sum(low < v <= end for v in known)))
        low = end
    counts.append((f"above {ENDS[-1] * 100:.0f} %", sum(v > ENDS[-1] for v in known)))
    counts.append(("not known", len(rows) - len(known)))
    return tuple(Sensitivity(label, n, n / len(rows)) for label, n in counts if rows)
