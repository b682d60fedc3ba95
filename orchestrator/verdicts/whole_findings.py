"""Findings of phones and SoCs as a whole: a shift that all variants share and none of them shows."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import isfinite, nan

import numpy as np
from scipy.stats import norm

from orchestrator.analysis.speed.levels import steps
from orchestrator.analysis.speed.rows import Bools, Floats
from orchestrator.analysis.words import faster_or_slower
from orchestrator.domain.digest import stable_id
from orchestrator.domain.finding import EVERYTHING, Finding, PhoneChange
from orchestrator.verdicts import other_clock
from orchestrator.verdicts.findings import Told
from orchestrator.verdicts.origin import what_was_new
from orchestrator.verdicts.speed import Judged
from orchestrator.verdicts.words import day

_95 = float(norm.ppf(0.975))


def whole_findings(judged: Judged) -> list[Told]:
    """Of SoCs, then of phones that no finding of their SoC explains."""
    found: list[Told] = []
    for soc in range(len(judged.socs)):
        phones = [d for d in np.flatnonzero(judged.matrix.soc == soc).tolist() if _told(judged, d)]
        delta = float(judged.whole.soc_delta[soc])
        if judged.whole.soc[soc]:
            along = [d for d in phones if (judged.whole.delta[d] > 0) == (delta > 0)]
            found.append(_finding(judged, soc, along, len(phones), delta, alone=False))
            phones = [d for d in phones if d not in along]
        found += [
            _finding(judged, soc, [d], len(phones), float(judged.whole.delta[d]), alone=True)
            for d in phones
            if judged.whole.device[d]
        ]
    return found


def _told(judged: Judged, device: int) -> bool:
    return isfinite(judged.whole.delta[device])


def _finding(
    judged: Judged, soc: int, devices: Sequence[int], able: int, delta: float, *, alone: bool
) -> Told:
    sd = float(np.sqrt(np.mean(judged.whole.se[list(devices)] ** 2) / len(devices)))
    epochs = [judged.nights.whole_epoch[judged.devices[d]] for d in devices]
    marked = np.any([_marked(judged, d) for d in devices], axis=0)
    ours = np.all([e == e[-1] for e in epochs], axis=0)
    levels = np.where(ours, _mean(judged.shift[list(devices)]), nan)
    moved = [s for s in steps(levels, sd, marked) if (s.size > 0) == (delta > 0)]
    night = moved[-1].night if moved else judged.shift.shape[1] - 1
    showing = 1 if alone else max(len(devices), 2)
    origin = what_was_new(judged, judged.steadiest(devices[0]), night, None, able, showing)
    if clock := other_clock.step(judged, devices[0]):
        known = origin.why if origin.cause != "environment" else ""
        origin = replace(
            origin,
            changed=" and ".join(filter(None, (origin.changed, clock))),
            why="; ".join(filter(None, (known, clock))),
        )
    name, where = judged.socs[soc], judged.devices[devices[0]] if alone else ""
    word = "regressed" if delta > 0 else "improved"
    told = "all its variants together" if alone else f"all variants of {len(devices)} phones together"
    finding = Finding(
        finding_id=stable_id(
            {
                "speed": word,
                "soc": name,
                "device": where,
                "case": EVERYTHING,
                "epoch": max(int(e[-1]) for e in epochs),
            }
        ),
        kind="speed",
        what=word,
        soc=name,
        case_id=EVERYTHING,
        device_id=where,
        cause=origin.cause,
        effect=delta,
        low=delta - _95 * sd,
        high=delta + _95 * sd,
        phones=[PhoneChange(judged.devices[d], float(judged.whole.delta[d]), nan, nan, 0) for d in devices],
        since=judged.nights.table.runs[origin.night],
        detail=f"{told} {faster_or_slower(delta)} since {day(judged, origin.night)}: {origin.why}",
    )
    return Told(finding, origin)


def _mean(shift: Floats) -> Floats:
    known = np.isfinite(shift)
    count = known.sum(axis=0)
    return np.where(count > 0, np.where(known, shift, 0.0).sum(axis=0) / np.maximum(count, 1), nan)


def _marked(judged: Judged, device: int) -> Bools:
    """(nights,) The phone's software is another than in its last night."""
    series = judged.steadiest(device)
    driver, builds = judged.nights.table.driver[series], judged.nights.os_build[series]
    there = np.flatnonzero(driver >= 0).tolist()
    found = np.zeros(len(driver), np.bool_)
    for before, night in pairwise(there):
        found[night] = driver[before] != driver[night] or builds[before] != builds[night]
    return found
