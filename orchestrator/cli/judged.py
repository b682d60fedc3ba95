"""What the history says of a run that ended: stored, judged, and written beside its results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from orchestrator.cli.decisions import decided_for
from orchestrator.cli.history import open_history
from orchestrator.cli.output import say
from orchestrator.domain.best import Best
from orchestrator.domain.confirmation import CONFIRMATION_FORMAT, Confirmation, Wanted
from orchestrator.domain.errors import TilefarmError, WireError
from orchestrator.domain.finding import Findings
from orchestrator.domain.results import RunResults
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import from_json, to_json
from orchestrator.execution.run_folder import write_atomically
from reports.changes.wanted import wanted_trials

CONFIRMATION = "confirmation.json"
SecondLook = Callable[[Sequence[Wanted], int, int], Confirmation | None]
"""Questions, samples of the whole night, and questions beyond the budget → what was measured again."""
DETAILS = 120
"""Findings whose nights are shown one by one, SoCs in turn; the table has them all."""
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class JudgedRun:
    findings: Findings | None = None
    """None: nothing to compare with, a part of a suite, or a history that cannot be used."""
    series: Mapping[str, Sequence[Mapping[str, Any]]] = field(
        default_factory=dict[str, Sequence[Mapping[str, Any]]]
    )
    """Finding id → every trial of its case on the phones that show it."""
    best: Best | None = None
    """Which variants to ship; None where ``findings`` is."""
    answered: bool = True
    """False: the history could not be used."""


def read_confirmation(folder: Path) -> Confirmation | None:
    """A run's second look; None where it has none, or one that cannot be read, which is said."""
    path = folder / CONFIRMATION
    if not path.is_file():
        return None
    try:
        found = from_json(Confirmation, path.read_bytes(), str(path))
        if found.format != CONFIRMATION_FORMAT:
            raise WireError(f"{path}: format {found.format}; this Tilefarm reads {CONFIRMATION_FORMAT}")
    except WireError as e:
        say(f"warning: {e}: the run is judged without its second look")
        return None
    return found


def judge_ended(
    results: RunResults,
    folder: Path,
    settings: Settings,
    *,
    store: bool,
    second_look: SecondLook | None = None,
) -> JudgedRun:
    """Put a run into the history and say what changed. A history that cannot be used costs a warning: the
    run's own report is made without it.

    Args:
        folder: of the run; findings.json and best.json are written there.
        store: False where it was stored when it ended. Who asks for a report again gets the scan for slow
            drift with it, whatever the day.
        second_look: measures again what seems to have changed; once in a run's life.
    """
    if not results.trials:
        return JudgedRun()
    try:
        return _judged(results, folder, settings, store=store, second_look=second_look)
    except TilefarmError as e:
        why = str(e)
    except Exception as e:  # a full disk, a fault of ours: it must not cost the report of a whole night
        log.exception("unexpected", run=results.run.run_id)
        why = f"{type(e).__name__}: {e}"
    run_id = results.run.run_id
    say(
        f"warning: the history says nothing of this run: {why}. Put it in later with `tilefarm db store "
        f"{run_id}`, then judge it with `tilefarm report {run_id}`"
    )
    return JudgedRun(answered=False)


def _judged(
    results: RunResults, folder: Path, settings: Settings, *, store: bool, second_look: SecondLook | None
) -> JudgedRun:
    # Loaded only here: their libraries take half a second, and most commands end no run.
    from orchestrator.history.query import some_series
    from orchestrator.history.usual import usual_clocks
    from orchestrator.verdicts.best import best_variants
    from orchestrator.verdicts.confirming import questions
    from orchestrator.verdicts.judge import first_look, judge_run

    history = open_history(settings)
    try:
        if store:
            history.store(results, usual_clocks(history, results))
        runs = {run.run_id: history.path(run) for run in history.runs(results.run.suite)}
        if not results.run.whole_suite or results.run.run_id not in runs or len(runs) < 2:
            return JudgedRun()
        decided = decided_for(settings, results.run)
        first, confirmation = first_look(history, results, decided), read_confirmation(folder)
        if confirmation is None and second_look is not None:
            asked = questions(first)
            confirmation = second_look(asked.wanted, asked.samples, asked.unpaid)
        findings = judge_run(history, results, decided, confirmation, first, scan=not store)
        best = best_variants(history, results.run.suite, results.run.run_id, results)
        files = [runs[run_id] for run_id in findings.nights]
        wanted = wanted_trials(results, findings, DETAILS)
        trials = some_series(files, {key for keys in wanted.values() for key in keys})
        series = {i: [row for key in keys for row in trials[key]] for i, keys in wanted.items()}
    finally:
        history.close()
    write_atomically(folder / "findings.json", to_json(findings))
    write_atomically(folder / "best.json", to_json(best))
    return JudgedRun(findings, series, best)
