"""Slow drift: once a week all nights that count are scanned for levels that no single night could tell.

Of each case on a SoC the mean over its phones is scanned (``analysis.speed.changepoint``), the common shift
taken off. Every baseline follows a drift, so each night finds it too small; first and last level do not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from math import isfinite, nan, sqrt

import numpy as np
from scipy.stats import t as student

from orchestrator.analysis.speed.baseline import baseline_nights
from orchestrator.analysis.speed.changepoint import DIFFERENCE_WORTH, Segment, noise, segments
from orchestrator.analysis.speed.discovery import q_values
from orchestrator.analysis.speed.pooled import PHONES
from orchestrator.analysis.speed.rows import Bools, Floats
from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.analysis.words import faster_or_slower
from orchestrator.domain.digest import stable_id
from orchestrator.domain.finding import Finding
from orchestrator.verdicts.findings import Told, phone_change
from orchestrator.verdicts.origin import Origin, what_was_new
from orchestrator.verdicts.speed import Judged
from orchestrator.verdicts.words import day

MIN_NIGHTS = 2 * RULE.min_nights
"""That count, before a case is scanned."""


@dataclass(frozen=True, slots=True)
class _Scanned:
    test: int
    levels: list[Segment]
    phones: list[int]
    """Series that drift the same way, the one that does most first."""
    p: float
    effect: float
    """From the first nights of the first level to the last ones of the last, as many as a baseline needs: a
    drift goes on within its segments."""


def is_due(judged: Judged) -> bool:
    """In the first night of a week (ISO 8601) that brought results: judging a night again scans it again."""
    weeks = [date.fromisoformat(d).isocalendar()[:2] for d in judged.nights.dates]
    return weeks[-1] not in weeks[:-1]


def drifts(judged: Judged) -> list[Told]:
    """Of cases that tonight's test finds the same; the largest first."""
    still = np.flatnonzero(judged.verdicts.tests == SPEEDS.index(Speed.SAME)).tolist()
    counts = _counting(judged)
    chosen, rows = _pooled(judged, still, counts)
    if not chosen:
        return []
    scanned = [
        _scanned(judged, test, levels, row, counts)
        for test, levels, row in zip(chosen, segments(rows), rows, strict=True)
    ]
    q = q_values(np.array([s.p for s in scanned]))
    found = [
        _told(judged, s, float(q[n]))
        for n, s in enumerate(scanned)
        if q[n] <= RULE.q
        and abs(s.effect) > float(judged.matrix.threshold[s.test])
        and len(s.phones) >= PHONES
    ]
    return sorted(found, key=lambda t: (-abs(t.finding.effect), t.finding.finding_id))


def _counting(judged: Judged) -> Bools:
    """(series, nights) Accepted ones of tonight's epoch and clock, and tonight."""
    nights = judged.nights
    past = baseline_nights(nights.past, nights.tonight, replace(RULE, window=RULE.scan_nights))
    return np.concatenate([past, np.isfinite(nights.table.log_ns[:, -1:])], axis=1)


def _pooled(judged: Judged, tests: Sequence[int], counts: Bools) -> tuple[list[int], Floats]:
    """Tests with nights and phones enough, and (tests, nights) the mean over their phones, each relative to
    its mean over the nights that all of them have: a phone that comes later makes no step."""
    chosen: list[int] = []
    rows: list[Floats] = []
    for test in tests:
        able = [s for s in judged.series_of(test) if np.count_nonzero(counts[s]) >= MIN_NIGHTS]
        if len(able) < PHONES:
            continue
        known = counts[able]
        common = known.all(axis=0)
        if np.count_nonzero(common) < RULE.min_nights:
            continue
        own = judged.values[able]
        own = np.where(known, own - own[:, common].mean(axis=1, keepdims=True), 0.0)
        there = np.count_nonzero(known, axis=0)
        chosen.append(test)
        rows.append(np.where(there > 0, own.sum(axis=0) / np.maximum(there, 1), nan))
    return chosen, np.array(rows).reshape(len(rows), counts.shape[1])


def _scanned(judged: Judged, test: int, levels: list[Segment], row: Floats, counts: Bools) -> _Scanned:
    if len(levels) < 2:
        return _Scanned(test, levels, [], 1.0, 0.0)
    first, last = levels[0], levels[-1]
    way = np.sign(last.level - first.level)
    moved: list[tuple[float, int]] = []
    for s in judged.series_of(test):
        known = np.where(counts[s], judged.values[s], nan)
        early, late = known[first.first : first.last + 1], known[last.first : last.last + 1]
        early, late = early[np.isfinite(early)], late[np.isfinite(late)]
        if len(early) and len(late) and (by := float(late.mean() - early.mean()) * way) > RULE.threshold / 2:
            moved.append((by, s))
    begun = row[first.first : first.last + 1]
    now = row[last.first : last.last + 1]
    ends = [part[np.isfinite(part)] for part in (begun, now)]
    effect = float(ends[1][-RULE.min_nights :].mean() - ends[0][: RULE.min_nights].mean())
    return _Scanned(test, levels, [s for _, s in sorted(moved, reverse=True)], _p(levels, row), effect)


def _p(levels: Sequence[Segment], row: Floats) -> float:
    """Of the clearest step, for all the nights that it could have been in (Bonferroni), with the degrees of
    freedom that the scan's own noise has."""
    packed = row[np.isfinite(row)]
    sd, n = float(noise(packed[None, :])[0]), len(packed)
    if not sd > 0:
        return 1.0
    clearest = max(
        abs(b.level - a.level) / (sd * sqrt(1 / a.nights + 1 / b.nights)) for a, b in pairwise(levels)
    )
    return min(1.0, 2 * n * float(student.sf(clearest, DIFFERENCE_WORTH * n)))


def _told(judged: Judged, found: _Scanned, q: float) -> Told:
    soc, case_id = judged.tests[found.test]
    table, effect, lead = judged.nights.table, found.effect, found.phones[0]
    begun = found.levels[1].first
    steepest = max(pairwise(found.levels), key=lambda ab: abs(ab[1].level - ab[0].level))[1].first
    new = what_was_new(judged, lead, steepest)
    origin = Origin(begun, found.levels[0].last, new.cause, new.changed, new.why)
    old, now = judged.environment(lead, origin.before), judged.environment(lead, -1)
    nights = range(found.levels[0].first, found.levels[0].last + 1)
    word = "regressed" if effect > 0 else "improved"
    epoch = max(int(judged.nights.epoch[s, -1]) for s in found.phones)
    spread = float(noise(judged.values[found.phones][:, np.isfinite(judged.values[lead])]).mean())
    reach = 1.96 * spread / sqrt(len(found.phones)) if isfinite(spread) else abs(effect)
    finding = Finding(
        finding_id=stable_id({"drift": word, "soc": soc, "case": case_id, "epoch": epoch}),
        kind="speed",
        what=word,
        soc=soc,
        case_id=case_id,
        cause=new.cause,
        effect=effect,
        low=effect - reach,
        high=effect + reach,
        q=q,
        phones=[phone_change(judged, s) for s in found.phones],
        since=table.runs[begun],
        baseline=[table.runs[n] for n in nights if table.code[lead, n] >= 0],
        code_before=judged.code(lead, origin.before),
        code_after=judged.code(lead, -1),
        environment_before="; ".join(filter(None, (old.driver, old.os_build))),
        environment_after="; ".join(filter(None, (now.driver, now.os_build))),
        detail=f"{faster_or_slower(effect)}: a drift since {day(judged, begun)}, in "
        f"{len(found.levels)} segments; at its steepest {new.why}",
    )
    return Told(finding, origin, drift=True)
