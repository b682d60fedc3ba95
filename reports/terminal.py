"""ReportModel → tables for a terminal. Texts are rich.Text: markup in names is never interpreted."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from orchestrator.analysis.compare import PROVISIONAL, Change
from orchestrator.analysis.one_sided import by_reason
from orchestrator.analysis.outcome import Outcome
from orchestrator.analysis.words import plural
from reports.changes.words import change
from reports.clocks import mark, median_words
from reports.model import BestGroup, BestRow, Finding, ReportModel
from reports.numbers import DASH, duration, percent, ratio, significant
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
from reports.terminal_changes import changes_lines
from reports.text import visible

MAX_ROWS = 15
MAX_WORKLOADS = 6
"""Workloads whose fastest variants are shown."""


def summary_table(model: ReportModel) -> RenderableType:
    """Verdict, counts, failures with how to repeat them, what never came, fastest variants, changes."""
    style = "bold red" if model.summary.exit_code == 1 else "bold yellow" if model.summary.bad else "bold"
    parts: list[RenderableType] = [_text(model.summary.sentence, style)]
    note = scope_note(model.run)
    parts += [Text(visible(note) + ".", no_wrap=True, overflow="ignore")] if note else []
    if model.run.degraded:
        title = _more(degraded_title(model.run), len(model.run.degraded))
        parts.append(_text(f"{title}:", "yellow"))
        parts += [_text(f"    {sentence}") for sentence in model.run.degraded[:MAX_ROWS]]
    if model.run.missed_nights:
        parts.append(_text(f"{missed_title(model.run)}:", "yellow"))
        parts += [_text(f"    {m.night}: {m.why}") for m in model.run.missed_nights[-MAX_ROWS:]]
    parts += [_text(d.warning, "yellow") for soc in model.socs for d in soc.devices if d.warning]
    parts += [_text(s.sentence) for s in model.shared]
    if model.comparison is not None:
        parts += [
            _text(
                f"new epoch: {e.device_id}: {e.what}: {e.before or 'not known'} → {e.after or 'not known'}",
                "yellow",
            )
            for e in model.comparison.epochs[:MAX_ROWS]
        ]
    parts += [_counts(model)]
    parts += [_text(line, "dim") for line in (other_api_note(model),) if line]
    for title, outcome, never_came, refused in (
        ("Unexpected failures", Outcome.FAILURE, (), ()),
        ("Not obtained", Outcome.INFRA, lost(model), uncounted(model)),
        ("Unexpected passes", Outcome.UNEXPECTEDLY_PASSED, (), ()),
    ):
        found = [f for f in model.findings(outcome) if not f.uncounted]
        if found or never_came or refused:
            parts.append(_findings(title, found, never_came, refused, model))
    if model.changes is not None:
        parts += [Text(), *changes_lines(model.changes)]
    if model.changes is not None and (better := model.changes.findings.unexpected):
        parts += [Text(), _text(_more("Better than the matrix expects", len(better)), "bold")]
        parts += [_text(sentence) for sentence in better[:MAX_ROWS]]
    if dropped := gone(model):
        parts += [Text(), _text(_more(gone_title(model), len(dropped)), "bold")]
        parts += [_text(f"{g.device}: {g.what}: {g.why}") for g in dropped[:MAX_ROWS]]
    if model.by_subgroup:
        parts += [Text(), _text("Failures by subgroup size", "bold")]
        parts += [_text(k.sentence) for k in model.by_subgroup[:MAX_ROWS]]
    if model.best_total:
        parts.append(_fastest(model))
    if model.clock_notes:
        parts.append(Text())
        parts += [_text(f"{d.device.name}: {text}") for d, text in model.clock_notes[:MAX_ROWS]]
    if model.pairs:
        parts += [Text(), *(_text(f"{p.names}: {p.sentence}") for p in model.pairs[:MAX_ROWS])]
    lines = precision_lines(model)
    if lines:
        parts += [Text(), _text("Effective precision", "bold"), *(_text(line) for line in lines)]
    if model.comparison is not None and not (model.changes and model.changes.judged and not model.slow):
        parts += [Text(), changes_table(model)]
    return Group(*parts)


def print_summary(model: ReportModel, console: Console) -> None:
    """Uncropped: commands stay whole on a narrow terminal and in a file."""
    console.print(summary_table(model), crop=False)


def _counts(model: ReportModel) -> Table:
    columns = ("SoC", "Device", "Failed", "Infra", "Missing", "Unexp. pass", "Known", "Passed", "Unsupported")
    table = _table("", columns, numeric=columns[2:])
    for soc in model.socs:
        for d in soc.devices:
            table.add_row(_text(soc.soc), _text(d.device.name), *(Text(str(n)) for n in d.counts.row))
    return table


def precision_lines(model: ReportModel) -> list[str]:
    """``llvmpipe: mediump runs as fp32, no gain (gles)``: at most one a device and API."""
    lines = [
        f"{d.device.name}: {text}" for soc in model.socs for d in soc.devices for text in d.precision_brief
    ]
    return lines[:MAX_ROWS] + ([f"and {len(lines) - MAX_ROWS} more"] if len(lines) > MAX_ROWS else [])


def _findings(
    title: str,
    found: Sequence[Finding],
    never_came: Sequence[Lost],
    refused: Sequence[Lost],
    model: ReportModel,
) -> RenderableType:
    """Lines, not a table: a command that is folded into a column cannot be copied."""
    shown = _more(title, max(len(found), len(never_came)))
    lines: list[RenderableType] = [Text(), _text(shown, "bold")]
    for item in refused[:MAX_ROWS]:
        lines.append(_text(f"not counted on {item.device}: {item.what}"))
        lines.append(Padding(_text(item.why), (0, 0, 0, 4)))
    for item in never_came[:MAX_ROWS]:
        lines.append(_text(f"missing on {item.device}: {item.what}"))
        lines.append(Padding(_text(item.why), (0, 0, 0, 4)))
    for f in found[:MAX_ROWS]:
        why = ": ".join(part for part in (f.reason, f.note) if part)
        lines.append(_text(f"{f.verdict.value} on {f.device_name}: {model.labels[f.case_id]}"))
        lines.append(Padding(_text(why), (0, 0, 0, 4)))
        lines.append(Text("    " + visible(f.repro), style="dim", no_wrap=True, overflow="ignore"))
    return Group(*lines)


def _fastest(model: ReportModel) -> RenderableType:
    """One table a device and workload, all with equal columns."""
    names = (
        "Kernel",
        "Api",
        "Precision",
        "Fastest variant",
        "Median",
        "Spread",
        "Clock",
        "Over naive",
        "GFLOP/s",
    )
    groups = [(d.device.name, g) for d, g in model.best(MAX_WORKLOADS)]
    cells = [[_best_cells(b) for b in fewer(g)] for _, g in groups]
    widths = [
        max(cell_len(visible(row[i])) for rows in [[names], *cells] for row in rows)
        for i in range(len(names))
    ]
    title = "Fastest correct variant of each kernel and API"
    parts: list[RenderableType] = [Text(), Text(title, "bold")]
    for (device, group), rows in zip(groups, cells, strict=True):
        parts.append(_text(f"{device}: {group.workload}"))
        header = group is groups[0][1]
        table = Table(box=None, pad_edge=False, show_header=header, padding=(0, 1, 0, 1), expand=True)
        for name, width in zip(names, widths, strict=True):
            right = name in ("Median", "Spread", "Over naive", "GFLOP/s")
            if name == "Fastest variant":  # what gives way where all is too wide
                table.add_column(name, ratio=1, overflow="fold")
            else:
                table.add_column(name, justify="right" if right else "left", width=width, overflow="fold")
        for row in rows:
            table.add_row(*(_text(t) for t in row))
        parts.append(table)
    left = model.best_total - len(groups)
    if left:
        parts.append(Text(f"and {left} more workload{'' if left == 1 else 's'} in the report", "dim"))
    return Group(*parts)


def fewer(group: BestGroup) -> list[BestRow]:
    """The fastest of each kernel, API and clock, whatever its precision; the report has the others."""
    best: dict[tuple[str, str, str], BestRow] = {}
    for row in sorted(group.rows, key=lambda b: (b.clock.clock_moved, b.stats.median_ns)):
        best.setdefault((row.kernel, row.api, row.stats.clock), row)
    return [row for row in group.rows if row in best.values()]


def _best_cells(b: BestRow) -> tuple[str, ...]:
    times = median_words(b.stats, b.clock), mark(b.clock) or percent(b.stats.spread), b.stats.clock
    return b.kernel, b.api, b.precision, b.variant, *times, ratio(b.speedup), significant(b.gflops)


def changes_table(model: ReportModel) -> RenderableType:
    """What changed against the run that the model was built with, and all that is beyond its bound."""
    comparison = model.comparison
    if comparison is None:
        return Text("")
    bound = model.max_slowdown
    parts: list[RenderableType] = []
    if model.slow and bound is not None:
        # All of them, quiet ones too: each is a reason for exit code 1.
        title = f"Slower than the bound of {ratio(bound)} ({len(model.slow)}; {PROVISIONAL})"
        parts += [_changes(title, model.slow, model), Text()]
    notable = [c for c in comparison.changes if c.notable]
    parts += [_text(text, "yellow") for text in comparison.notes]
    title = f"Change against {visible(comparison.before.run_id)} ({PROVISIONAL})"
    if not notable:
        parts.append(Text(f"{title}: nothing worth a look in {len(comparison.changes)} cases"))
    else:
        parts.append(_changes(_more(title, len(notable)), notable[:MAX_ROWS], model))
    return Group(*parts)


def one_sided_lines(model: ReportModel) -> RenderableType:
    """Cases that only one of two compared runs measured, by device and reason."""
    comparison = model.comparison
    if comparison is None:
        return Text("")
    parts: list[RenderableType] = []
    for run, items in ((comparison.before, comparison.missing), (comparison.after, comparison.new)):
        groups = by_reason(items)
        if groups:
            parts += [Text(), _text(_more(f"Only in {run.run_id}", len(groups)), "bold")]
        for group in groups[:MAX_ROWS]:
            parts.append(_text(f"{group.device_id}: {plural(len(group.items), 'case')}: {group.why}"))
    return Group(*parts)


def _changes(title: str, changes: Sequence[Change], model: ReportModel) -> Table:
    table = _table(
        title,
        ("Device", "Case", "Verdict", "Before", "After", "Change", "Cause"),
        numeric=("Before", "After", "Change"),
    )
    for c in changes:
        verdict = (
            f"{c.verdict_before.value} → {c.verdict_after.value}"
            if c.verdict_changed
            else c.verdict_after.value
        )
        before = duration(c.before.median_ns if c.before is not None else None)
        after = duration(c.after.median_ns if c.after is not None else None)
        texts = (
            c.device_id,
            model.case_names.short(c.case_id),
            verdict,
            before,
            after,
            c.not_comparable or change(c.effect),
            DASH if c.cause == "none" else c.cause,
        )
        table.add_row(*(_text(t) for t in texts))
    return table


def _table(title: str, columns: tuple[str, ...], numeric: tuple[str, ...] = ()) -> Table:
    table = Table(title=Text(title) if title else None, title_justify="left", box=None, pad_edge=False)
    for name in columns:
        table.add_column(Text(name), justify="right" if name in numeric else "left", overflow="fold")
    return table


def _more(title: str, total: int) -> str:
    return title if total <= MAX_ROWS else f"{title} (first {MAX_ROWS} of {total})"


def _text(text: str, style: str = "") -> Text:
    return Text(visible(text), style=style)
