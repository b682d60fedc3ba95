"""ReportModel → a Markdown summary for a comment on a pull request, and never longer than one may be."""

from orchestrator.analysis.compare import PROVISIONAL, Change
from orchestrator.analysis.outcome import Outcome
from reports.clocks import mark, median_words
from reports.machines.markdown_changes import cause_lines, not_measured_lines, tally_lines
from reports.machines.marked import code, plain
from reports.model import BestRow, Finding, ReportModel
from reports.numbers import ratio, significant
from reports.scope import (
    Lost,
    degraded_title,
    gone,
    gone_title,
    lost,
    missed_title,
    other_api_note,
    scope_note,
    uncounted,
)

MAX_ROWS = 20
MAX_WORKLOADS = 6
MAX_TITLE = 1_000
MAX_BYTES = 60_000
"""GitHub takes 65,536 characters in a comment; what posts it may add some words."""
CUT = "\n… the rest is in the report.\n"


def render_markdown(model: ReportModel, base: str = "") -> str:
    """At most :data:`MAX_BYTES`; what comes last is left out first.

    Args:
        base: URL of the run's folder, for links; empty: names of files.
    """
    kept: list[str] = []
    left = MAX_BYTES - len(CUT.encode())
    for line in _lines(model, base):
        left -= len(line.encode("utf-8", "replace")) + 1
        if left < 0:
            return "\n".join([*kept, CUT])
        kept.append(line)
    return "\n".join(kept) + "\n"


def _lines(model: ReportModel, base: str) -> list[str]:
    run, changes = model.run, model.changes
    lines = [
        f"### {plain((changes or model.summary).sentence, MAX_TITLE)}",
        "",
        *([f"This run's results: {plain(model.summary.sentence, MAX_TITLE)}", ""] if changes else []),
        f"Suite {code(run.suite)}, run {code(run.run_id)}.",
    ]
    note = scope_note(run)
    lines += [f"{plain(note)}."] if note else []
    lines += [*tally_lines(changes), *not_measured_lines(changes)] if changes is not None else []
    if changes is None and run.degraded:
        lines += _list(degraded_title(run), run.degraded)
    missed = [f"{m.night}: {m.why}" for m in run.missed_nights]
    lines += _list(missed_title(run), missed[-MAX_ROWS:]) if changes is None else []
    if changes is not None:
        lines += _findings("Unexpected failures", model.findings(Outcome.FAILURE))
        lines += cause_lines(changes, base)
    warnings = [d.warning for soc in model.socs for d in soc.devices if d.warning]
    warnings += [s.sentence for s in model.shared]
    if warnings:
        lines += ["", *(f"- {plain(w)}" for w in dict.fromkeys(warnings))]
    c = model.summary.counts
    if c.all_probes:
        lines += ["", f"{c.probes} of {c.all_probes} probes of the devices passed."]
    lines += ["", "| SoC | failed | infra | missing | unexpected pass | known | passed | unsupported |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for soc in model.socs:
        lines.append(f"| {code(soc.soc)} | " + " | ".join(str(n) for n in soc.counts.row) + " |")
    other = other_api_note(model)
    lines += ["", f"{plain(other)}."] if other else []
    if changes is None:
        lines += _findings("Unexpected failures", model.findings(Outcome.FAILURE))
    infra = tuple(f for f in model.findings(Outcome.INFRA) if not f.uncounted)
    lines += _findings("Not obtained", infra, lost(model), uncounted(model))
    lines += _list(plain(gone_title(model)), [f"{g.device}: {g.what}: {g.why}" for g in gone(model)])
    lines += _findings("Unexpected passes", model.findings(Outcome.UNEXPECTEDLY_PASSED))
    lines += _list("Better than the matrix expects", changes.findings.unexpected if changes else [])
    lines += _list("Clocks", [f"{d.device.name}: {text}" for d, text in model.clock_notes])
    lines += _list("Failures by subgroup size", [k.sentence for k in model.by_subgroup])
    lines += _fastest(model)
    lines += _list("GLES and Vulkan side by side", [f"{p.names}: {p.sentence}" for p in model.pairs])
    lines += _list("Effective precision", [f"{d.device.name}: {said}" for d, said in model.precision_news])
    return lines + _changes(model)


def _list(title: str, items: list[str]) -> list[str]:
    if not items:
        return []
    return ["", f"**{title}**", "", *(f"- {plain(i)}" for i in items[:MAX_ROWS]), *_more(len(items))]


def _findings(
    title: str,
    found: tuple[Finding, ...],
    never_came: tuple[Lost, ...] = (),
    refused: tuple[Lost, ...] = (),
) -> list[str]:
    if not (found or never_came or refused):
        return []
    lines = ["", f"**{title}**", ""]
    lines += [
        f"- not counted on {code(i.device)}: {code(i.what)}: {plain(i.why)}" for i in refused[:MAX_ROWS]
    ]
    lines += _more(len(refused))
    lines += [f"- missing on {code(i.device)}: {code(i.what)}: {plain(i.why)}" for i in never_came[:MAX_ROWS]]
    lines += _more(len(never_came))
    for f in found[:MAX_ROWS]:
        why = f.reason or f.note
        lines.append(
            f"- {f.verdict.value} on {code(f.device_name)}: {code(f.label)}: {plain(why)} ({code(f.repro)})"
        )
    return lines + _more(len(found))


def _fastest(model: ReportModel) -> list[str]:
    rows = [
        f"| {code(d.device.name)} | {code(group.workload)} | {code(b.kernel)} {code(b.precision)} | "
        f"{code(b.variant)} | {_median(b)} ({b.stats.clock}) | {ratio(b.speedup)} | "
        f"{significant(b.gflops)} |"
        for d, group in model.best(MAX_WORKLOADS)
        for b in group.rows
    ]
    if not rows:
        return []
    left = model.best_total - len(model.best(MAX_WORKLOADS))
    head = [
        "", "**Fastest correct variants**", "",
        "| device | workload | kernel | variant | median | over naive | GFLOP/s |",
        "| --- | --- | --- | --- | ---: | ---: | ---: |",
    ]  # fmt: skip
    return head + rows + (["", f"{left} more workloads are in the report."] if left else [])


def _median(b: BestRow) -> str:
    moved = mark(b.clock)
    return median_words(b.stats, b.clock) + (f", {moved}" if moved else "")


def _changes(model: ReportModel) -> list[str]:
    comparison = model.comparison
    if comparison is None:
        return []
    lines = ["", f"**Change against run {code(comparison.before.run_id)}** ({PROVISIONAL})", ""]
    lines += [f"- {plain(note)}" for note in comparison.notes]
    for epoch in comparison.epochs[:MAX_ROWS]:
        lines.append(
            f"- new epoch: {code(epoch.device_id)}: {plain(epoch.what)}: "
            f"{code(epoch.before)} → {code(epoch.after)}"
        )
    lines += [
        f"- slower than the bound of {ratio(model.max_slowdown)}: {_change(c, model)}"
        for c in model.slow[:MAX_ROWS]
    ]
    lines += _more(len(model.slow))
    notable = [c for c in comparison.changes if c.notable and c not in model.slow]
    lines += [f"- {_change(c, model)}" for c in notable[:MAX_ROWS]]
    if not notable and not model.slow:
        lines.append(f"- nothing worth a look in {len(comparison.changes)} cases")
    return lines + _more(len(notable))


def _change(c: Change, model: ReportModel) -> str:
    verdict = (
        f"{c.verdict_before.value} → {c.verdict_after.value}" if c.verdict_changed else c.verdict_after.value
    )
    cause = "" if c.cause == "none" else f", look first at: {c.cause}"
    where = f"{code(c.device_id)} {code(model.labels[c.case_id])}"
    return f"{where}: {verdict}, {c.not_comparable or ratio(c.ratio)}{cause}"


def _more(total: int) -> list[str]:
    return [f"- and {total - MAX_ROWS} more"] if total > MAX_ROWS else []
