"""What the history says of a run that ended: stored, judged, and written beside its results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.cli.decisions import decided_for
from orchestrator.cli.history import open_history
from orchestrator.cli.output import say
from orchestrator.domain.errors import TilefarmError
from orchestrator.domain.finding import Findings
from orchestrator.domain.results import RunResults
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from orchestrator.execution.run_folder import write_atomically

DETAILS = 60
"""Findings whose nights are shown one by one, the largest first; the table has them all."""


@dataclass(frozen=True, slots=True)
class JudgedRun:
    findings: Findings | None = None
    """None: nothing to compare with, a part of a suite, or a history that cannot be used."""
    series: Mapping[str, Sequence[Mapping[str, Any]]] = field(
        default_factory=dict[str, Sequence[Mapping[str, Any]]]
    )
    """Finding id → every trial of its case on the phone that shows it most."""
    answered: bool = True
    """False: the history could not be used."""


def judge_ended(results: RunResults, folder: Path, settings: Settings, *, store: bool) -> JudgedRun:
    """Put a run into the history and say what changed. A history that cannot be used costs a warning: the
    run's own report is made without it.

    Args:
        folder: of the run; findings.json is written there.
        store: False where it was stored when it ended.
    """
    if not results.trials:
        return JudgedRun()
    try:
        return _judged(results, folder, settings, store=store)
    except TilefarmError as e:
        again = f"tilefarm db store {results.run.run_id}"
        say(f"warning: the history says nothing of this run: {e}. Put it in later with `{again}`")
        return JudgedRun(answered=False)


def _judged(results: RunResults, folder: Path, settings: Settings, *, store: bool) -> JudgedRun:
    # Loaded only here: their libraries take half a second, and most commands end no run.
    from orchestrator.history.query import one_series
    from orchestrator.verdicts.judge import judge_run

    history = open_history(settings)
    try:
        if store:
            history.store(results)
        runs = {run.run_id: history.path(run) for run in history.runs(results.run.suite)}
        if not results.run.whole_suite or results.run.run_id not in runs or len(runs) < 2:
            return JudgedRun()
        findings = judge_run(history, results, decided_for(settings, results.run))
        files = [runs[run_id] for run_id in findings.nights]
        shown = sorted(findings.findings, key=lambda f: -abs(f.effect))[:DETAILS]
        series = {
            f.finding_id: one_series(files, f.device_id or f.phones[0].device_id, f.case_id)
            for f in shown
            if f.phones
        }
    finally:
        history.close()
    write_atomically(folder / "findings.json", to_json(findings))
    return JudgedRun(findings, series)
