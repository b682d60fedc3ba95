"""One workload on one SoC: which variants may be chosen, and which of them is the one to ship."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite
from typing import Literal

import numpy as np

from orchestrator.analysis.best.front import front
from orchestrator.analysis.best.levels import Levels, levels, middle
from orchestrator.analysis.best.pick import Candidate
from orchestrator.domain.best import SCOPES, Chosen, LeftOut, Variant, WorkloadBest
from orchestrator.history.database import KnownCase
from orchestrator.history.query import FailedTrial, NightTable
from orchestrator.verdicts.best_nights import Reader, VariantNights
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
    wall: Mapping[tuple[str, str], bool]
    """(device, case) that the wall clock timed: whether always."""
    dates: Sequence[str]
    """Of the nights."""


def workload_best(
    facts: Facts, phones: Phones, soc: str, rows: Sequence[int], refused: Refused, chosen: Chosen
) -> WorkloadBest:
    """``rows``: series of the table that are of this workload and SoC."""
    own = phones.of(soc)
    reader = Reader.of(facts.table, phones, [p.device_id for p in own])
    every = [reader.read(facts.cases[case_id], series) for case_id, series in _by_case(facts, rows)]
    wanted = [
        v for v in every if not chosen.precisions or str(v.case.axes.get("precision")) in chosen.precisions
    ]
    last = max(v.newest for v in every)
    left: list[LeftOut] = []
    kept: list[VariantNights] = []
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
    log_ns = np.stack([v.times(len(own)) for v in kept])
    found = levels(log_ns)
    comparable = [n for n in range(len(kept)) if isfinite(found.score[n])]
    left += [
        _left(v, "never measured in one night of a phone with the others")
        for n, v in enumerate(kept)
        if n not in comparable
    ]
    _variants(facts, made, kept, found, comparable)
    candidates = [Candidate(v.case.case_id, v.worst("nmse"), v.case.axes) for v in kept]
    setting = Setting(own, log_ns, found, candidates, [v.clocked for v in kept])
    for scope in SCOPES:
        among = [n for n in comparable if scope in ("any", kept[n].case.axes.get(API))]
        if among:
            made.picks.append(pick_of(setting, made, scope, among))
    return made


def _by_case(facts: Facts, rows: Sequence[int]) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found[facts.table.series[row][1]].append(row)
    return sorted(found.items())


def _why_not(
    facts: Facts, variant: VariantNights, soc: str, refused: Refused, chosen: Chosen, last: int
) -> str:
    """Why a variant may not be chosen; empty: it may."""
    table, case_id = facts.table, variant.case.case_id
    code = table.codes[variant.code] if variant.code >= 0 else ""
    own, trials = variant.devices, facts.failures.get(case_id, ())
    failed = [t for t in trials if t.device_id in own and t.code_hash == code]
    if failed:
        newest = failed[-1]
        night = facts.dates[table.runs.index(newest.run_id)]
        said = f": {newest.reason}" if newest.reason else ""
        return f"{newest.verdict} on {newest.device_id} in the night of {night}, {len(failed)} in all{said}"
    if why := refused.why.get((soc, case_id)):
        return why
    if variant.newest < last:
        return "not measured in the SoC's newest night"
    if not variant.counts.any():
        return "no usable time: too few samples in one clock state"
    nmse = variant.worst("nmse")
    if chosen.max_nmse is not None and not nmse <= chosen.max_nmse:
        return f"NMSE {nmse:.3g} is above {chosen.max_nmse:.3g}"
    return ""


def _left(variant: VariantNights, why: str) -> LeftOut:
    return LeftOut(variant.case.case_id, variant.case.kernel, dict(variant.case.axes), why)


def _variants(
    facts: Facts, made: WorkloadBest, kept: Sequence[VariantNights], found: Levels, comparable: Sequence[int]
) -> None:
    """Fills in what may be chosen, the fastest first."""
    first = min(float(found.score[n]) for n in comparable)
    level = float(middle(found.level[None, :])[0])
    ordered = sorted(comparable, key=lambda n: (float(found.score[n]), kept[n].case.case_id))
    errors = {n: kept[n].worst("nmse") for n in ordered}
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
                max_abs=variant.worst("max_abs"),
                phones=int(used.any(axis=1).sum()),
                nights=int(used.any(axis=0).sum()),
                clock=_clock(facts, variant),
                front=is_front,
            )
        )


def _clock(facts: Facts, variant: VariantNights) -> Literal["gpu", "wall", "both"]:
    by_wall = [facts.wall.get((device, variant.case.case_id)) for device in variant.devices]
    if all(found is None for found in by_wall):
        return "gpu"
    return "wall" if all(by_wall) else "both"
