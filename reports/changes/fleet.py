"""Phones over the nights: what all variants of each did together, and its health."""

import math
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.analysis.words import plural
from orchestrator.domain.finding import DeviceNight
from reports.changes.cards import mean_history
from reports.changes.model import PhoneNights, Spark
from reports.changes.words import history_words, night, readable, signed
from reports.numbers import DASH
from reports.svg.shift import shift_chart
from reports.svg.sparkline import sparkline

MAX_ENVIRONMENTS = 8


def phone_nights(
    devices: Iterable[DeviceNight], runs: Sequence[str], names: Mapping[str, str]
) -> tuple[PhoneNights, ...]:
    made: list[PhoneNights] = []
    for number, device in enumerate(devices):
        own = names.get(device.device_id, device.device_id)
        changed = _changed(device.environment)
        # Names of nights stand at the right end, as the values do.
        axis = runs[-max(len(device.shift), len(device.sentinels), 1) :]
        picture = shift_chart(
            f"fleet-p{number}", own, axis, device.shift, device.sentinels, [i for i, _ in changed[1:]]
        )
        told = tuple((night(axis[i]) if i < len(axis) else "", text) for i, text in changed)
        items = tuple(readable(item, runs, names) for item in device.items)
        made.append(PhoneNights(device, own, picture, told[-MAX_ENVIRONMENTS:], items))
    return tuple(made)


def _changed(environment: Sequence[str]) -> list[tuple[int, str]]:
    """The first night's and every later one that differs; nights without the phone say nothing."""
    made: list[tuple[int, str]] = []
    for i, text in enumerate(environment):
        if text and (not made or made[-1][1] != text):
            made.append((i, text))
    return made


def common_shift(devices: Sequence[DeviceNight], runs: Sequence[str]) -> tuple[Spark | None, str]:
    """Mean over phones, night by night, and the last night's."""
    known = [d.shift for d in devices if any(math.isfinite(v) for v in d.shift)]
    if not known:
        return None, DASH
    mean = mean_history(known)
    axis = runs[-len(mean) :] or [""]
    words = f"common shift, mean of {plural(len(known), 'phone')}: {history_words(mean)}"
    return Spark(sparkline(mean, words), night(axis[0]), night(axis[-1]), "common shift"), signed(mean[-1])
