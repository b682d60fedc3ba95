"""The end of a run: reports beside results.json, ``out/latest``, the summary and the exit code."""

import os
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

import structlog

from orchestrator.analysis.summary import Summary
from orchestrator.cli.judged import JudgedRun, SecondLook, judge_ended
from orchestrator.cli.output import print_json, result, say
from orchestrator.domain.errors import TilefarmError, UsageError
from orchestrator.domain.gate import Gate
from orchestrator.domain.results import RunResults
from orchestrator.domain.settings import Settings
from orchestrator.execution.run_folder import RunFolder, find_run, load_results, point_latest
from reports.terminal import print_summary
from reports.write import ReportPaths, write_reports

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Finished:
    folder: RunFolder
    reports: ReportPaths

    @property
    def summary(self) -> Summary:
        return self.reports.model.summary

    def print(self, *, as_json: bool) -> None:
        """The summary table and where the report is, or one JSON document."""
        if as_json:
            print_json(
                {
                    "run_id": self.folder.path.name,
                    "verdict": self.summary.sentence,
                    "exit_code": self.summary.exit_code,
                    "results": str(self.folder.results_json),
                    "report": str(self.reports.index),
                }
            )
            return
        print_summary(self.reports.model, result)
        result.print(f"\nreport: {os.path.relpath(self.reports.index)}", markup=False, soft_wrap=True)


def finish_run(
    folder: RunFolder,
    results: RunResults,
    settings: Settings,
    today: date,
    gate: Gate,
    *,
    newest: bool = True,
    second_look: SecondLook | None = None,
) -> Finished:
    """Store the run, judge it, write the reports.

    ``newest`` lets out/latest point to this run, unless a later one has it. ``second_look`` measures again
    what seems to have changed, where the run has no second look yet.

    What ``gate`` leaves open is as the run was started.
    """
    out = settings.out
    previous = _previous(out, results)
    judged = judge_ended(results, folder.path, settings, store=newest, second_look=second_look)
    reports = _written(folder, results, previous, settings, today, gate, judged)
    if newest and folder.path.name >= _latest_id(out):
        point_latest(out, folder.path.name)
    return Finished(folder, reports)


def _written(
    folder: RunFolder,
    results: RunResults,
    previous: RunResults | None,
    settings: Settings,
    today: date,
    gate: Gate,
    judged: JudgedRun,
) -> ReportPaths:
    """The reports, without what the history says where that cannot be shown."""
    write = partial(
        write_reports,
        results,
        previous,
        folder.path,
        today,
        max_slowdown=gate.max_slowdown,
        fail_on=gate.fail_on,
        base=settings.run_url(results.run.run_id),
    )
    try:
        return write(judged=judged.answered, findings=judged.findings, series=judged.series, best=judged.best)
    except (TilefarmError, OSError):
        raise
    except Exception as e:  # a fault of ours in pages of changes must not cost the report of a whole night
        if judged.findings is None:
            raise
        log.exception("unexpected", run=results.run.run_id)
        say(f"warning: the reports say nothing of the history: {type(e).__name__}: {e}")
        return write(judged=False)


def _previous(out: Path, results: RunResults) -> RunResults | None:
    """The run to compare with. One that cannot be read any more costs the comparison, not the report."""
    if not results.previous_run or not (out / "runs" / results.previous_run / "results.json").is_file():
        return None
    try:
        return load_results(out / "runs" / results.previous_run)
    except UsageError as e:
        say(f"warning: {e}: the report compares with no earlier run")
        return None


def finished_results(out: Path, name: str) -> RunResults:
    """The results of a run that has some.

    Raises:
        UsageError: no such run, or it was cut off; says how to complete it.
    """
    path = find_run(out, name)
    if (path / "manifest.json").is_file() and not (path / "results.json").is_file():
        raise UsageError(
            f"run {path.name} is not finished, so it has no results yet: "
            f"complete it with `tilefarm run --resume {path.name}`"
        )
    return load_results(path)


def _latest_id(out: Path) -> str:
    """Run id that out/latest names (ids sort by time); empty when there is none."""
    link = out / "latest"
    return link.readlink().name if link.is_symlink() else ""
