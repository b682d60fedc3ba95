"""ReportModel → a short Markdown summary, for a pull request or a chat."""

from orchestrator.analysis.compare import PROVISIONAL, Change
from orchestrator.analysis.outcome import Outcome
from reports.clocks import mark, median_words
from reports.model import BestRow, Finding, ReportModel
from reports.numbers import ratio, significant
from reports.scope import (
    Lost,
    gone,
    gone_title,
    lost,
    missed_title,
    other_api_note,
    scope_note,
    uncounted,
)
from reports.text import visible

MAX_ROWS = 20
MAX_WORKLOADS = 6


def render_markdown(model: ReportModel) -> str:
    run = model.run
    lines = [
        f"### {_text(model.summary.sentence)}",
        "",
        f"Suite {_code(run.suite)}, run {_code(run.run_id)}.",
    ]
    note = scope_note(run)
    lines += [f"{_text(note)}."] if note else []
    missed = [f"{m.night}: {m.why}" for m in run.missed_nights]
    lines += _list(missed_title(run), missed[-MAX_ROWS:])
    warnings = [d.warning for soc in model.socs for d in soc.devices if d.warning]
    warnings += [s.sentence for s in model.shared]
    if warnings:
        lines += ["", *(f"- {_text(w)}" for w in warnings)]
    c = model.summary.counts
    if c.all_probes:
        lines += ["", f"{c.probes} of {c.all_probes} probes of the devices passed."]
    lines += ["", "| SoC | failed | infra | missing | unexpected pass | known | passed | unsupported |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for soc in model.socs:
        lines.append(f"| {_code(soc.soc)} | " + " | ".join(str(n) for n in soc.counts.row) + " |")
    other = other_api_note(model)
    lines += ["", f"{_text(other)}."] if other else []
    lines += _findings("Unexpected failures", model.findings(Outcome.FAILURE))
    infra = tuple(f for f in model.findings(Outcome.INFRA) if not f.uncounted)
    lines += _findings("Not obtained", infra, lost(model), uncounted(model))
    lines += _list(_text(gone_title(model)), [f"{g.device}: {g.what}: {g.why}" for g in gone(model)])
    lines += _findings("Unexpected passes", model.findings(Outcome.UNEXPECTEDLY_PASSED))
    lines += _list("Clocks", [f"{d.device.name}: {text}" for d, text in model.clock_notes])
    lines += _list("Failures by subgroup size", [k.sentence for k in model.by_subgroup])
    lines += _fastest(model)
    lines += _list("GLES and Vulkan side by side", [f"{p.names}: {p.sentence}" for p in model.pairs])
    lines += _list("Effective precision", [f"{d.device.name}: {said}" for d, said in model.precision_news])
    lines += _changes(model)
    return "\n".join(lines) + "\n"


def _list(title: str, items: list[str]) -> list[str]:
    if not items:
        return []
    return ["", f"**{title}**", "", *(f"- {_text(i)}" for i in items[:MAX_ROWS]), *_more(len(items))]


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
        f"- not counted on {_code(i.device)}: {_code(i.what)}: {_text(i.why)}" for i in refused[:MAX_ROWS]
    ]
    lines += _more(len(refused))
    lines += [
        f"- missing on {_code(i.device)}: {_code(i.what)}: {_text(i.why)}" for i in never_came[:MAX_ROWS]
    ]
    lines += _more(len(never_came))
    for f in found[:MAX_ROWS]:
        why = f.reason or f.note
        lines.append(
            f"- {f.verdict.value} on {_code(f.device_name)}: {_code(f.label)}: "
            f"{_text(why)} ({_code(f.repro)})"
        )
    return lines + _more(len(found))


def _fastest(model: ReportModel) -> list[str]:
    rows = [
        f"| {_code(d.device.name)} | {_code(group.workload)} | {_code(b.kernel)} {_code(b.precision)} | "
        f"{_code(b.variant)} | {_median(b)} ({b.stats.clock}) | {ratio(b.speedup)} | "
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
    lines = ["", f"**Change against run {_code(comparison.before.run_id)}** ({PROVISIONAL})", ""]
    lines += [f"- {_text(note)}" for note in comparison.notes]
    for epoch in comparison.epochs[:MAX_ROWS]:
        lines.append(
            f"- new epoch: {_code(epoch.device_id)}: {_text(epoch.what)}: "
            f"{_code(epoch.before)} → {_code(epoch.after)}"
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
    where = f"{_code(c.device_id)} {_code(model.labels[c.case_id])}"
    return f"{where}: {verdict}, {c.not_comparable or ratio(c.ratio)}{cause}"


def _more(total: int) -> list[str]:
    return [f"- and {total - MAX_ROWS} more"] if total > MAX_ROWS else []


def _code(text: str) -> str:
    """A code span; backticks, pipes and angle brackets cannot leave it."""
    shown = visible(text).replace("`", "'").replace("|", "¦")
    return f"`{shown}`" if shown.strip() else "–"


def _text(text: str) -> str:
    """Running text: HTML and Markdown characters are escaped."""
    shown = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{c}" if c in "\\`*[]|#!~_" else c for c in shown)
