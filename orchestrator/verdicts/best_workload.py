"""One workload on one SoC: which variants may be chosen, and which of them is the one to ship."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import exp, isfinite, nan
from typing import Literal

import numpy as np

from orchestrator.analysis.best.front import front
from orchestrator.analysis.best.levels import Levels, levels, middle
from orchestrator.analysis.best.pick import Candidate
from orchestrator.analysis.speed.night import Basis
from orchestrator.analysis.speed.rows import Bools, Floats
from orchestrator.domain.best import SCOPES, Chosen, LeftOut, Variant, WorkloadBest
from orchestrator.history.database import KnownCase
from orchestrator.history.query import FailedTrial, NightTable
from orchestrator.verdicts.best_phones import API, Phones
from orchestrator.verdicts.best_pick import Setting, pick_of
from orchestrator.verdicts.best_refused import Refused


@dataclass(frozen=True, slots=True)
class Facts:
    """All nights that are looked at."""

    table: NightTable
    cases: Mapping[str, KnownCase]
    """Variants with usual inputs."""
    failures: Mapping[str, Sequence[FailedTrial]]
    """Case id → trials."""
    wall: AbstractSet[tuple[str, str, str]]
    """(run, device, case) that the wall clock timed."""
    dates: Sequence[str]
    """Of the nights."""


@dataclass(frozen=True, slots=True)
class _Of:
    """One variant on the phones of the SoC."""

    case: KnownCase
    series: Sequence[int]
    """One a phone; −1: it has none."""
    code: int
    """Of its newest trial on the SoC; −1: none."""
    counts: Bools
    """(phones, nights)"""

    @property
    def identity(self) -> tuple[str, tuple[tuple[str, object], ...]]:
        """The same for cases that differ in their data's seed only."""
        return self.case.kernel, tuple(sorted(self.case.axes.items()))

    @property
    def there(self) -> list[tuple[int, int]]:
        """Phones that have it, and their series."""
        return [(phone, row) for phone, row in enumerate(self.series) if row >= 0]


def workload_best(
    facts: Facts, phones: Phones, soc: str, rows: Sequence[int], refused: Refused, chosen: Chosen
) -> WorkloadBest:
    """``rows``: series of the table that are of this workload and SoC."""
    devices = [p.device_id for p in phones.of(soc)]
    every = [_of(facts.table, phones, facts.cases[i], own, devices) for i, own in _by_case(facts, rows)]
    wanted = [
        v for v in every if not chosen.precisions or str(v.case.axes.get("precision")) in chosen.precisions
    ]
    last = max((n for v in every for _, r in v.there for n in _nights(facts.table, r)), default=-1)
    left: list[LeftOut] = []
    kept: list[_Of] = []
    seen: set[object] = set()
    for variant in wanted:
        why = _why_not(facts, variant, soc, refused, chosen, last)
        if not why and variant.identity in seen:
            why = "the same variant with data of another seed stands for it"
        if why:
            left.append(_left(variant, why))
        else:
            kept.append(variant)
            seen.add(variant.identity)
    case = every[0].case
    made = WorkloadBest(case.op, dict(case.workload), left_out=left)
    if not kept:
        return made
    log_ns = np.stack([_times(facts.table, v) for v in kept])
    found = levels(log_ns)
    comparable = [n for n in range(len(kept)) if isfinite(found.score[n])]
    left += [
        _left(v, "never measured in one night of a phone with the others")
        for n, v in enumerate(kept)
        if n not in comparable
    ]
    _variants(facts, made, kept, found, comparable)
    candidates = [Candidate(v.case.case_id, _worst(facts.table, v, "nmse"), v.case.axes) for v in kept]
    clocked = [_clocked(facts.table, v) for v in kept]
    setting = Setting(phones.of(soc), log_ns, found, candidates, clocked)
    for scope in SCOPES:
        among = [n for n in comparable if scope in ("any", kept[n].case.axes.get(API))]
        if among:
            made.picks.append(pick_of(setting, made, scope, among))
    return made


def _by_case(facts: Facts, rows: Sequence[int]) -> list[tuple[str, dict[str, int]]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for row in rows:
        device, case_id = facts.table.series[row]
        found[case_id][device] = row
    return sorted(found.items())


def _of(
    table: NightTable, phones: Phones, case: KnownCase, rows: Mapping[str, int], devices: Sequence[str]
) -> _Of:
    series = [rows.get(device, -1) for device in devices]
    newest = [(n[-1], table.code[row, n[-1]]) for row in series if row >= 0 and (n := _nights(table, row))]
    code = int(max(newest)[1]) if newest else -1
    counts = np.zeros((len(devices), len(table.runs)), np.bool_)
    passed = table.verdicts.index("pass") if "pass" in table.verdicts else -2
    for phone, row in enumerate(series):
        driver = phones.newest.get((devices[phone], str(case.axes.get(API, ""))))
        if row >= 0 and driver is not None:
            usable = np.isfinite(table.log_ns[row]) & (table.verdict[row] == passed)
            counts[phone] = usable & (table.code[row] == code) & (table.driver[row] == driver)
    return _Of(case, series, code, counts)


def _nights(table: NightTable, row: int) -> list[int]:
    """In which it has code: a trial that infrastructure ended may have none."""
    return [n for n, code in enumerate(table.code[row].tolist()) if code >= 0 and table.codes[code]]


def _why_not(facts: Facts, variant: _Of, soc: str, refused: Refused, chosen: Chosen, last: int) -> str:
    """Why a variant may not be chosen; empty: it may."""
    table, case_id = facts.table, variant.case.case_id
    code = table.codes[variant.code] if variant.code >= 0 else ""
    own = {table.series[row][0] for _, row in variant.there}
    failed = [t for t in facts.failures.get(case_id, ()) if t.device_id in own and t.code_hash == code]
    if failed:
        newest = failed[-1]
        night = facts.dates[table.runs.index(newest.run_id)]
        said = f": {newest.reason}" if newest.reason else ""
        return f"{newest.verdict} on {newest.device_id} in the night of {night}, {len(failed)} in all{said}"
    if why := refused.why.get((soc, case_id)):
        return why
    if not any(last in _nights(table, row) for _, row in variant.there):
        return "not measured in the SoC's newest night"
    if not variant.counts.any():
        return "no usable time: too few samples in one clock state"
    nmse = _worst(table, variant, "nmse")
    if chosen.max_nmse is not None and not nmse <= chosen.max_nmse:
        return f"NMSE {nmse:.3g} is above {chosen.max_nmse:.3g}"
    return ""


def _clocked(table: NightTable, variant: _Of) -> bool:
    """Whether each of its numbers is of one clock state: none is a percentile for want of clock readings."""
    return all(
        (table.basis[row, variant.counts[phone]] == Basis.CLOCK_STATE).all() for phone, row in variant.there
    )


def _left(variant: _Of, why: str) -> LeftOut:
    return LeftOut(variant.case.case_id, variant.case.kernel, dict(variant.case.axes), why)


def _times(table: NightTable, variant: _Of) -> Floats:
    """(phones, nights)"""
    times = np.full(variant.counts.shape, np.nan)
    for phone, row in variant.there:
        times[phone] = np.where(variant.counts[phone], table.log_ns[row], np.nan)
    return times


def _worst(table: NightTable, variant: _Of, name: str) -> float:
    """Largest error of all nights that count; NaN where one of them is not known."""
    seen = [table.numerics[name][row, variant.counts[phone]] for phone, row in variant.there]
    return float(np.max(np.concatenate(seen))) if variant.counts.any() else nan


def _variants(
    facts: Facts, made: WorkloadBest, kept: Sequence[_Of], found: Levels, comparable: Sequence[int]
) -> None:
    """Fills in what may be chosen, the fastest first."""
    first = min(float(found.score[n]) for n in comparable)
    level = float(middle(found.level[None, :])[0])
    ordered = sorted(comparable, key=lambda n: (float(found.score[n]), kept[n].case.case_id))
    errors = {n: _worst(facts.table, kept[n], "nmse") for n in ordered}
    on_front = front([(float(found.score[n]), errors[n]) for n in ordered])
    for n, is_front in zip(ordered, on_front, strict=True):
        variant, used = kept[n], found.used[n]
        score = float(found.score[n])
        made.variants.append(
            Variant(
                case_id=variant.case.case_id,
                kernel=variant.case.kernel,
                axes=dict(variant.case.axes),
                code_hash=facts.table.codes[variant.code],
                latency_ns=round(exp(level + score), 1),
                log_ratio=round(score - first, 6),
                nmse=errors[n],
                max_abs=_worst(facts.table, variant, "max_abs"),
                phones=int(used.any(axis=1).sum()),
                nights=int(used.any(axis=0).sum()),
                clock=_clock(facts, variant),
                front=is_front,
            )
        )


def _clock(facts: Facts, variant: _Of) -> Literal["gpu", "wall", "both"]:
    wall = gpu = False
    for phone, row in variant.there:
        for night in np.flatnonzero(variant.counts[phone]).tolist():
            by_wall = (facts.table.runs[night], *facts.table.series[row]) in facts.wall
            wall, gpu = wall or by_wall, gpu or not by_wall
    return "both" if wall and gpu else "wall" if wall else "gpu"
