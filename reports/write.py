"""Writes a run's reports beside its results.json."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from orchestrator.analysis.outcome import CompileWhen, compile_recorded
from orchestrator.domain.best import Best
from orchestrator.domain.finding import Findings
from orchestrator.domain.gate import FailOn
from orchestrator.domain.results import RunResults
from reports.build import build_report
from reports.changes.evidence import Row
from reports.html import render_best, render_changes, render_index, render_soc
from reports.junit import render_junit
from reports.machines.metrics import render_metrics
from reports.markdown import render_markdown
from reports.model import ReportModel


@dataclass(frozen=True, slots=True)
class ReportPaths:
    index: Path
    socs: dict[str, Path]
    """SoC's name → its page of this run's results."""
    changes: dict[str, Path]
    """SoC's name → its page of changes; empty without findings."""
    summary: Path
    model: ReportModel
    """What was written, e.g. for the terminal's table and the exit code."""


def write_reports(
    results: RunResults,
    previous: RunResults | None,
    folder: Path,
    today: date,
    *,
    max_slowdown: float | None = None,
    compile_when: CompileWhen = compile_recorded,
    findings: Findings | None = None,
    series: Mapping[str, Sequence[Row]] | None = None,
    best: Best | None = None,
    fail_on: FailOn | None = None,
    judged: bool = True,
    base: str = "",
) -> ReportPaths:
    """index.html, one soc-NAME.html a SoC, junit.xml, summary.md, metrics.prom, logs/ for long driver logs.

    ``previous`` is the run to compare with; ``max_slowdown`` (1.10: ten percent) bounds ratios against it.
    ``findings`` are what the history says of this run: with them, changes-NAME.html and .csv of each SoC too.
    ``series``: finding id → trials of its case, as ``history.query.one_series`` gives them, for the details.
    ``base``: URL of the folder, for links, where somebody serves it.
    ``best``: which variants to ship; with them, best-NAME.html of each SoC too.

    Raises:
        WireError: results that contradict themselves.
        OSError: the folder cannot be written.
    """
    model = build_report(
        results,
        previous,
        today,
        max_slowdown=max_slowdown,
        compile_when=compile_when,
        findings=findings,
        series=series,
        best=best,
        fail_on=fail_on,
        judged=judged,
    )
    folder.mkdir(parents=True, exist_ok=True)
    socs = {page.soc: folder / page.file_name for page in model.socs}
    for page in model.socs:
        _write(socs[page.soc], render_soc(model, page))
    changes = {page.soc: folder / page.file_name for page in model.changes.socs} if model.changes else {}
    for page in model.changes.socs if model.changes else ():
        _write(changes[page.soc], render_changes(model, page))
        _write(folder / page.table_file, page.csv)
    for page in model.shipped.pages if model.shipped else ():
        _write(folder / page.file_name, render_best(model, page))
    for name, log in model.logs.items():
        (folder / name).parent.mkdir(exist_ok=True)
        _write(folder / name, log)
    _write(folder / "junit.xml", render_junit(model, results))
    _write(folder / "metrics.prom", render_metrics(model))
    return ReportPaths(
        index=_write(folder / "index.html", render_index(model)),
        socs=socs,
        changes=changes,
        summary=_write(folder / "summary.md", render_markdown(model, base)),
        model=model,
    )


def _write(path: Path, text: str) -> Path:
    """Whole or not at all: a reader never sees half a page."""
    partial = path.with_name(path.name + ".part")
    partial.write_text(text, encoding="utf-8", newline="\n")
    return partial.replace(path)
