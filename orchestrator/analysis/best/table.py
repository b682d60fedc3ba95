"""Best variants → the table that an app ships, with fallbacks for SoCs that nobody measured."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import isfinite

from orchestrator.analysis.best.fallback import fallback
from orchestrator.domain.best import SCOPES, Best, Pick, Scope, SocBest, Variant, WorkloadBest
from orchestrator.domain.tuning import (
    MATCHES,
    Entry,
    TunedMargin,
    TunedSoc,
    TunedVariant,
    Tuning,
)

ERROR_DIGITS = 4
"""Significant ones of an error."""


def tuning_table(best: Best, command: str) -> Tuning:
    """One history gives one table, in one order.

    Args:
        command: that makes it again.
    """
    entries = [*_of_socs(best), *_fallbacks(best)]
    return Tuning(
        tilefarm=best.tilefarm,
        suite=best.suite,
        run_id=best.run_id,
        runs=best.runs,
        nights=best.nights,
        precisions=best.chosen.precisions,
        max_nmse=best.chosen.max_nmse,
        command=command,
        socs=[_soc(soc) for soc in best.socs],
        entries=sorted(entries, key=_order),
    )


def _order(entry: Entry) -> tuple[int, str, str, str, str, int]:
    place = (MATCHES.index(entry.match), SCOPES.index(entry.api))
    return place[0], entry.vendor, entry.soc, entry.op, entry.workload_key, place[1]


def _soc(found: SocBest) -> TunedSoc:
    drivers = sorted({d for phone in found.phones for d in phone.drivers.values()})
    nights = len({run for phone in found.phones for run in phone.runs})
    return TunedSoc(found.soc, found.vendor, drivers, len(found.phones), nights, found.virtual)


def _of_socs(best: Best) -> Iterator[Entry]:
    for soc in best.socs:
        for workload in soc.workloads:
            for pick in workload.picks:
                yield _entry(soc, workload, pick)


def _entry(soc: SocBest, workload: WorkloadBest, pick: Pick) -> Entry:
    variant = workload.variant(pick.case_id)
    measured = {p.device_id for p in pick.phones}
    drivers = {p.drivers.get(variant.api, "") for p in soc.phones if p.device_id in measured}
    return Entry(
        match="soc",
        soc=soc.soc,
        vendor=soc.vendor,
        api=pick.api,
        op=workload.op,
        workload=dict(sorted(workload.workload.items())),
        variant=_variant(variant),
        drivers=sorted(drivers - {""}),
        latency_ns=round(variant.latency_ns),
        margin=_margin(pick),
        tied=pick.tied,
        phones=len(pick.phones),
        nights=pick.nights,
        near_share=round(pick.near / pick.pairs, 4) if pick.pairs else None,
        # Who ships a table knows no phone of the farm: ids stay in best.json.
        warnings=[
            *(_without_ids(w, soc) for w in (*pick.warnings, *soc.driver_warnings.get(variant.api, ()))),
            *soc.warnings,
        ],
    )


def _without_ids(text: str, soc: SocBest) -> str:
    numbered = {phone.device_id: f"phone {number}" for number, phone in enumerate(soc.phones, start=1)}
    for device_id in sorted(numbered, key=len, reverse=True):  # one id may begin another
        text = text.replace(device_id, numbered[device_id])
    return text


def _margin(pick: Pick) -> TunedMargin | None:
    other = pick.runner_up
    if other is None or not isfinite(other.log_ratio):
        return None
    return TunedMargin(other.case_id, other.log_ratio, _known(other.low), _known(other.high))


def _variant(variant: Variant) -> TunedVariant:
    return TunedVariant(
        variant.case_id,
        variant.kernel,
        dict(sorted(variant.axes.items())),
        variant.code_hash,
        _error(variant.nmse),
        _error(variant.max_abs),
    )


def _known(value: float) -> float | None:
    return value if isfinite(value) else None


def _error(value: float) -> float | None:
    return float(f"{value:.{ERROR_DIGITS}g}") if isfinite(value) else None


def _fallbacks(best: Best) -> Iterator[Entry]:
    """Of each vendor with two SoCs at least, and of all SoCs."""
    groups: dict[tuple[str, str, str], list[tuple[SocBest, WorkloadBest]]] = defaultdict(list)
    for soc in best.socs:
        for workload in soc.workloads:
            key = " ".join(f"{n}={v}" for n, v in sorted(workload.workload.items()))
            for vendor in dict.fromkeys((soc.vendor, "")):
                groups[vendor, workload.op, key].append((soc, workload))
    for (vendor, _, _), members in groups.items():
        for scope in SCOPES:
            if (entry := _fallback(vendor, scope, members)) is not None:
                yield entry


def _fallback(vendor: str, scope: Scope, members: Sequence[tuple[SocBest, WorkloadBest]]) -> Entry | None:
    ratios: dict[str, dict[str, float]] = {}
    for soc, workload in members:
        among = [v for v in workload.variants if scope in ("any", v.api)]
        first = min((v.log_ratio for v in among), default=0.0)
        ratios[soc.soc] = {v.case_id: v.log_ratio - first for v in among}
    found = fallback(ratios)
    if found is None:
        return None
    seen = [workload.variant(found.case_id) for _, workload in members]
    worst = max(seen, key=lambda v: v.nmse if isfinite(v.nmse) else float("inf"))
    made_up = any(soc.virtual for soc, _ in members)
    return Entry(
        match="vendor" if vendor else "all",
        soc="",
        vendor=vendor,
        api=scope,
        op=members[0][1].op,
        workload=dict(sorted(members[0][1].workload.items())),
        variant=_variant(worst),
        phones=sum(v.phones for v in seen),
        nights=min(v.nights for v in seen),
        loss=round(found.loss, 6),
        socs=list(found.socs),
        warnings=["some of its phones are virtual: their times say nothing about their SoCs"]
        if made_up
        else [],
    )
