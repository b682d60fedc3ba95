"""Variant tables of one device: rows, columns that vary, the fastest of each kernel."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.analysis.clocks import steady, trial_clock
from orchestrator.analysis.hints import HINT_AXIS, HintEffect
from orchestrator.analysis.metrics import Baseline, BaselineKey, baselines, gflops, speedup, traffic_ratio
from orchestrator.analysis.numerics import worst_error, worst_use
from orchestrator.analysis.outcome import JudgedTrial
from orchestrator.analysis.replays import executions, range_words
from orchestrator.analysis.roofline import Point
from orchestrator.analysis.stats import timing_stats
from orchestrator.domain.case import Case, axis_text
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from reports.labels import Labels, compact
from reports.model import BestGroup, BestRow, VariantRow, VariantTable

INPUTS = "inputs"
SEED = "seed"


@dataclass(frozen=True, slots=True)
class _Context:
    """What every row of a device looks things up in."""

    naive: Mapping[BaselineKey, Baseline]
    anchors: Mapping[str, str]
    roofs: Mapping[str, Point]
    joined: Mapping[str, str]
    """Case id → the names of the hints that share its row."""


def variant_tables(
    trials: Sequence[JudgedTrial],
    anchors: Mapping[str, str],
    hints: Sequence[HintEffect],
    roofs: Mapping[str, Point],
) -> tuple[VariantTable, ...]:
    """One table per op and shape. ``anchors``: case id → finding. Hints without effect share a row.

    ``roofs``: case id → place under the device's ceilings.
    """
    merged = _merged(hints)
    kept: dict[str, list[JudgedTrial]] = defaultdict(list)
    hidden: dict[str, int] = defaultdict(int)
    for item in trials:
        title = _title(item.info.case)
        same = merged.get(item.info.case.case_id)
        if same is not None and same[0] != item.info.case.case_id:
            hidden[title] += 1
        else:
            kept[title].append(item)
    names = {t.info.case.case_id: str(t.info.case.axes.get(HINT_AXIS, "")) for t in trials}
    joined = {ids[0]: " = ".join(names[i] for i in ids) for ids in set(merged.values())}
    context = _Context(baselines(trials), anchors, roofs, joined)
    return tuple(_table(title, items, context, hidden[title]) for title, items in kept.items())


def best_groups(trials: Iterable[JudgedTrial], labels: Labels) -> tuple[BestGroup, ...]:
    """Fastest correct variant per workload, kernel, api, precision and clock; most variants first.

    A workload with one correct variant in all is left out: nothing was compared there.
    """
    known = list(trials)
    naive = baselines(known)
    families: dict[tuple[str, ...], list[JudgedTrial]] = defaultdict(list)
    for item in known:
        case = item.info.case
        stats = timing_stats(item.trial.timing)
        if item.trial.verdict is Verdict.PASS and stats is not None:
            api, precision = (axis_text(case.axes.get(name, "")) for name in ("api", "precision"))
            families[labels.workload(case), case.kernel, api, precision, stats.clock].append(item)
    groups: dict[str, list[BestRow]] = defaultdict(list)
    for (workload, kernel, api, precision, _), items in families.items():
        best = min(steady(items, _trial), key=_median)
        stats = timing_stats(best.trial.timing)
        if stats is None:
            continue
        others = (
            (name, axis_text(value))
            for name, value in best.info.case.axes.items()
            if name not in ("api", "precision") and labels.common.get(name) != axis_text(value)
        )
        clock = trial_clock(best.trial)
        groups[workload].append(
            BestRow(
                kernel=kernel,
                api=api,
                precision=precision,
                variant=compact(others),
                stats=stats,
                speedup=None if clock.states else speedup(best, naive),
                gflops=None if clock.states else gflops(best.info.cost, stats),
                of=len(items),
                clock=clock,
            )
        )
    made = [BestGroup(workload, tuple(rows)) for workload, rows in groups.items()]
    return tuple(sorted((g for g in made if g.variants > 1), key=lambda g: -g.variants))


def _table(
    title: str,
    items: Sequence[JudgedTrial],
    context: _Context,
    hidden: int,
) -> VariantTable:
    texts = [_values(t.info.case, context.joined) for t in items]
    names = list(dict.fromkeys(name for values in texts for name in values))
    common = [n for n in names if len({values.get(n, "") for values in texts}) == 1]
    columns = [n for n in names if n not in common]
    fastest = _fastest(items)
    ordered = sorted(zip(items, texts, strict=True), key=lambda pair: _order(pair[0]))
    rows = tuple(
        _row(item, tuple(values.get(c, "") for c in columns), context, fastest) for item, values in ordered
    )
    timed = [r.stats for r in rows if r.stats is not None]
    return VariantTable(
        title=title,
        common=tuple((n, texts[0].get(n, "")) for n in common),
        columns=tuple(columns),
        rows=rows,
        clock_notes=tuple(dict.fromkeys(s.clock_note for s in timed if s.clock_note)),
        clocks=tuple(dict.fromkeys(f"{s.n} samples, {s.clock} clock" for s in timed)),
        hidden_hints=hidden,
        executions=range_words([executions(t.trial.outputs) for t in items]),
        low_ns=min((s.min_ns for s in timed), default=0.0),
        high_ns=max((s.max_ns for s in timed), default=0.0),
    )


def _row(
    item: JudgedTrial,
    values: tuple[str, ...],
    context: _Context,
    fastest: frozenset[str],
) -> VariantRow:
    trial, info = item.trial, item.info
    stats = timing_stats(trial.timing)
    correct = trial.verdict is Verdict.PASS
    clock = trial_clock(trial)
    return VariantRow(
        anchor=context.anchors.get(trial.case_id, ""),
        case_id=trial.case_id,
        kernel=info.case.kernel,
        values=values,
        outcome=item.outcome,
        verdict=trial.verdict,
        stats=stats,
        speedup=None if clock.states else speedup(item, context.naive),
        gflops=gflops(info.cost, stats) if stats is not None and correct and not clock.states else None,
        bytes_moved=info.cost.bytes_moved,
        traffic_ratio=traffic_ratio(info.cost),
        max_error=worst_error(trial.outputs),
        use=worst_use(trial.outputs, info.tolerance),
        compile_ns=sum(trial.timing.compile_ns) if trial.timing is not None else None,
        fastest=trial.case_id in fastest,
        roof=None if clock.states else context.roofs.get(trial.case_id),
        clock=clock,
    )


def _merged(hints: Iterable[HintEffect]) -> dict[str, tuple[str, ...]]:
    """Case id → the group it shares a row with, the first id being the row that stays."""
    groups = [ids for effect in hints if effect.no_effect for ids in effect.without_effect]
    return {case_id: ids for ids in groups for case_id in ids}


def _title(case: Case) -> str:
    """Op and shape; input distributions of one shape share a table."""
    return replace(case, inputs="").workload_label.removesuffix(" inputs=")


def _values(case: Case, joined: Mapping[str, str]) -> dict[str, str]:
    values = {INPUTS: case.inputs, SEED: str(case.seed)}
    values |= {k: axis_text(v) for k, v in case.axes.items()}
    if case.case_id in joined:
        values[HINT_AXIS] = joined[case.case_id]
    return values


def _fastest(items: Iterable[JudgedTrial]) -> frozenset[str]:
    """Per kernel, exact workload and clock, where at least two correct variants were timed.

    One whose clock moved while it was timed only where that is so of all.
    """
    groups: dict[tuple[str, str, str], list[JudgedTrial]] = defaultdict(list)
    for item in items:
        stats = timing_stats(item.trial.timing)
        if item.trial.verdict is Verdict.PASS and stats is not None:
            groups[item.info.case.kernel, item.info.case.workload_id, stats.clock].append(item)
    return frozenset(
        min(steady(g, _trial), key=_median).info.case.case_id for g in groups.values() if len(g) > 1
    )


def _trial(item: JudgedTrial) -> Trial:
    return item.trial


def _median(item: JudgedTrial) -> float:
    stats = timing_stats(item.trial.timing)
    return stats.median_ns if stats is not None else float("inf")


def _order(item: JudgedTrial) -> tuple[str, bool, float]:
    """By inputs, then correct before wrong, then by time."""
    return (item.info.case.inputs, item.trial.verdict is not Verdict.PASS, _median(item))
