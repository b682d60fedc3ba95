"""Best variants and names of phones → pages, for the renderer."""

import math
from collections import Counter
from collections.abc import Mapping

from markupsafe import Markup

from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.words import plural
from orchestrator.domain.best import Best, Margin, Pick, SocBest, Variant, WorkloadBest
from reports.best.chart import front_chart, shapes_of
from reports.best.model import BestPage, BestPages, LeftRow, PickRow, VariantRow, WorkloadPart
from reports.best.names import VariantNames, parameters, workload_title
from reports.numbers import DASH, duration, significant

KINDS = ("with a clear winner", "tied", "not sure yet", "with one variant only")
"""Of workloads that have something to ship."""


def build_best(
    best: Best,
    names: Mapping[str, str],
    file_names: Mapping[str, str],
    results: Mapping[str, str],
    changes: Mapping[str, str],
) -> BestPages:
    """
    Args:
        names: device id → name, where it is known.
        file_names: SoC → ``soc-NAME.html``, for all SoCs of ``best``.
        results, changes: SoC → page, where it has one.
    """
    shapes = shapes_of(v.precision for soc in best.socs for w in soc.workloads for v in w.variants)
    needed = round(best.method.get("min_nights", RULE.min_nights))
    pages = tuple(
        BestPage(
            soc=soc,
            file_name=file_names[soc.soc].replace("soc-", "best-", 1),
            results_file=results.get(soc.soc, ""),
            changes_file=changes.get(soc.soc, ""),
            said=_said(soc, needed),
            parts=tuple(_part(w, f"w{n}", names, shapes) for n, w in enumerate(soc.workloads, 1)),
            phones=tuple(
                (p, names.get(p.device_id, p.device_id), "; ".join(sorted(set(p.drivers.values()))))
                for p in soc.phones
            ),
        )
        for soc in best.socs
    )
    return BestPages(best, pages, names)


def _said(soc: SocBest, needed: int) -> str:
    picks = [w.picks[0] for w in soc.workloads if w.picks]
    if not picks:
        return "no variant may be shipped yet."
    kinds = Counter(_kind(pick, needed) for pick in picks)
    words = [f"{kinds[kind]} {kind}" for kind in KINDS if kinds[kind]]
    missing = len(soc.workloads) - len(picks)
    words += [f"{missing} without any" if missing else ""]
    nights = len({run for p in soc.phones for run in p.runs})
    rest = f"{plural(len(soc.phones), 'phone')}, {plural(nights, 'night')}"
    return f"{plural(len(soc.workloads), 'workload')}, {', '.join(filter(None, words))}; {rest}."


def _kind(pick: Pick, needed: int) -> str:
    """A winner is clear where enough nights and phones say so, and the interval of its margin does."""
    clear, tied, unsure, alone = KINDS
    if pick.runner_up is None:
        return alone
    if pick.tied:
        return tied
    enough = pick.nights >= needed and len(pick.phones) > 1
    return clear if enough and pick.runner_up.low > 0 else unsure  # NaN: not known


def _part(
    workload: WorkloadBest, anchor: str, phones: Mapping[str, str], shapes: Mapping[str, str]
) -> WorkloadPart:
    names = VariantNames([*workload.variants, *workload.left_out])
    precisions = {v.precision for v in workload.variants}
    rows = tuple(_row(v, names, shapes) for v in workload.variants)
    first = workload.picks[0].case_id if workload.picks else ""
    chart = front_chart(f"{anchor}-chart", workload.variants, shapes, first) if first else Markup()
    return WorkloadPart(
        anchor=anchor,
        title=workload_title(workload.op, workload.workload),
        parameters=parameters(workload.workload),
        picks=tuple(_pick(p, workload, names, phones) for p in workload.picks),
        chart=chart,
        legend=tuple((shape, precision) for precision, shape in shapes.items() if precision in precisions),
        front=tuple(r for r in rows if r.variant.front or r.variant.case_id == first),
        rows=rows,
        left_out=tuple(LeftRow(left, names.short(left.case_id)) for left in workload.left_out),
    )


def _row(variant: Variant, names: VariantNames, shapes: Mapping[str, str]) -> VariantRow:
    return VariantRow(
        variant=variant,
        name=names.short(variant.case_id),
        full=names.full(variant.case_id),
        latency=duration(variant.latency_ns),
        slower=_percent(variant.log_ratio) if variant.log_ratio > 0 else DASH,
        error=significant(variant.nmse),
        max_abs=significant(variant.max_abs),
        shape=shapes[variant.precision],
    )


def _pick(pick: Pick, workload: WorkloadBest, names: VariantNames, phones: Mapping[str, str]) -> PickRow:
    variant = workload.variant(pick.case_id)
    margin = pick.runner_up
    return PickRow(
        pick=pick,
        name=names.short(pick.case_id),
        full=names.full(pick.case_id),
        variant=variant,
        latency=duration(variant.latency_ns),
        margin=_percent(margin.log_ratio) if margin is not None else DASH,
        interval=_interval(margin),
        runner_up=names.short(margin.case_id) if margin is not None else "",
        won=f"{pick.won} of {pick.pairs}",
        near=f"{pick.near} of {pick.pairs}",
        worst=_worst(pick, phones),
        ties=tuple(names.short(c) for c in pick.tied),
    )


def _interval(margin: Margin | None) -> str:
    """``+6.4 % … +7.4 %``"""
    if margin is None or not (math.isfinite(margin.low) and math.isfinite(margin.high)):
        return "not known" if margin is not None else ""
    return f"{_percent(margin.low)} … {_percent(margin.high)}"


def _worst(pick: Pick, phones: Mapping[str, str]) -> str:
    worst = pick.worst_phone
    if worst is None or not worst.loss > 0:
        return ""
    return f"{phones.get(worst.device_id, worst.device_id)}: {_percent(worst.loss)}"


def _percent(log_ratio: float) -> str:
    """``+6.7 %``, ``×2.15`` from there on, ``−0.3 %`` for less time; ``–``: not known."""
    if not math.isfinite(log_ratio):
        return DASH
    if log_ratio >= math.log(2):
        return f"×{math.exp(min(log_ratio, 50.0)):.3g}"
    return f"{math.expm1(log_ratio) * 100:+.1f} %".replace("-", "−")
