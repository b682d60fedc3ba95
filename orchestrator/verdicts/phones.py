"""What each phone did in a night as a whole: its common shift, and whatever its keeper should hear."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.speed.rows import Floats
from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.speed.shift import shifts
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.domain.finding import EVERYTHING, DeviceNight, Finding, SpeedWord
from orchestrator.domain.results import RunResults
from orchestrator.verdicts import other_clock
from orchestrator.verdicts.rows import SHOWN
from orchestrator.verdicts.speed import Judged
from orchestrator.verdicts.words import day

_MOVED = (Speed.REGRESSED, Speed.IMPROVED)


@dataclass(frozen=True, slots=True)
class Presence:
    """Of one phone in the nights that are looked at."""

    first: int
    last: int
    """Night with its last trial."""
    nights: int
    replaces: str = ""
    """Device whose place and name it took."""
    replaced_by: str = ""


def presences(judged: Judged, names: Mapping[str, str]) -> dict[str, Presence]:
    """
    Args:
        names: device → what people call it. A phone that comes under the name of one that is gone, with the
            same SoC, has its place.
    """
    found: dict[str, Presence] = {}
    for device, name in enumerate(judged.devices):
        there = (judged.nights.table.code[judged.matrix.device == device] >= 0).any(axis=0)
        nights = np.flatnonzero(there).tolist()
        found[name] = Presence(nights[0], nights[-1], len(nights))
    soc_of = {name: judged.socs[int(judged.matrix.soc[n])] for n, name in enumerate(judged.devices)}
    for new, here in list(found.items()):
        gone = [
            old
            for old, there in found.items()
            if there.last < here.first and names.get(old) == names.get(new, "") and soc_of[old] == soc_of[new]
        ]
        if gone and names.get(new):
            old = max(gone, key=lambda d: found[d].last)
            found[new] = Presence(here.first, here.last, here.nights, replaces=old)
            there = found[old]
            found[old] = Presence(there.first, there.last, there.nights, there.replaces, new)
    return found


def not_there(results: RunResults, judged: Judged, seen: Mapping[str, Presence]) -> list[str]:
    """Sentences about phones that tell nothing tonight, or not yet."""
    tonight = len(judged.nights.table.runs) - 1
    known = {m.device_id for m in results.missing}
    said: list[str] = []
    for name, phone in seen.items():
        if phone.last < tonight and not phone.replaced_by and name not in known:
            if tonight - phone.last <= RULE.window:
                said.append(f"{name}: not measured since {day(judged, phone.last)}")
        elif phone.last == tonight and phone.nights <= RULE.min_nights and (phone.first or phone.replaces):
            said.append(_begins(judged, name, phone))
    for device, name in enumerate(judged.devices):
        if why := other_clock.of_phone(judged, device):
            said.append(f"{name}: {why}")
    return said


def _begins(judged: Judged, name: str, phone: Presence) -> str:
    since = day(judged, phone.first)
    if phone.replaces:
        return (
            f"{name}: in the place of {phone.replaces} since {since}; its series "
            f"began anew, with {phone.nights - 1} of {RULE.min_nights} nights before this one"
        )
    return (
        f"{name}: first seen {since}; no verdict on its speed before {RULE.min_nights} nights, "
        f"{phone.nights - 1} so far"
    )


def device_night(judged: Judged, device: int, phone: Presence, told: Sequence[Finding]) -> DeviceNight:
    """``told``: findings of phones and SoCs as a whole."""
    nights, name = judged.nights, judged.devices[device]
    soc = judged.socs[int(judged.matrix.soc[device])]
    own = np.flatnonzero(judged.matrix.device == device)
    steadiest = judged.steadiest(device)
    total = nights.table.log_ns.shape[1]
    whole = next(
        (f for f in told if f.case_id == EVERYTHING and name in {p.device_id for p in f.phones}), None
    )
    word: SpeedWord = "same"
    if whole is not None:
        word = "regressed" if whole.effect > 0 else "improved"
    elif not nights.measured[own].any():
        word = "missing"
    elif not np.isfinite(judged.whole.delta[device]):
        word = "new"
    return DeviceNight(
        device_id=name,
        soc=soc,
        shift=_rounded(judged.shift[device]),
        sentinels=_rounded(_sentinels(judged, device)),
        verdict=word,
        environment=[nights.table.driver_text(steadiest, n) for n in range(total)][-SHOWN:],
        items=_items(judged, device, own.tolist(), phone, whole),
    )


def _items(
    judged: Judged, device: int, own: Sequence[int], phone: Presence, whole: Finding | None
) -> list[str]:
    items: list[str] = []
    if phone.replaced_by:
        items.append(f"its place and name went to {phone.replaced_by} after {day(judged, phone.last)}")
    elif phone.last < len(judged.nights.table.runs) - 1:
        items.append(f"not measured since {day(judged, phone.last)}")
    if phone.replaces:
        items.append(
            f"in the place of {phone.replaces} since {day(judged, phone.first)}: another phone, so its "
            "series began anew"
        )
    if whole is not None:
        items.append(whole.detail)
    if why := other_clock.of_phone(judged, device):
        items.append(why)
    alone = sum(SPEEDS[int(judged.verdicts.series[s])] in _MOVED for s in own)
    if alone:
        items.append(f"{alone} {'case' if alone == 1 else 'cases'} moved on this phone alone")
    return items


def _sentinels(judged: Judged, device: int) -> Floats:
    """(nights,) Shift over the frozen cases alone."""
    frozen = (judged.matrix.device == device) & judged.nights.sentinel
    values = judged.nights.table.log_ns[frozen]
    if not frozen.any() or values.shape[1] < 2:
        return np.full(len(judged.nights.table.runs), np.nan)
    own = np.zeros(len(values), np.int64)
    return shifts(values, own, 1, np.ones(len(values), np.bool_)).sentinels[0]


def _rounded(values: Floats) -> list[float]:
    return [round(float(v), 5) for v in values[-SHOWN:]]
