"""``tilefarm compare A B`` and ``tilefarm report``: reading runs that are on disk."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from orchestrator.analysis.compare import Change, Comparison
from orchestrator.analysis.compare import compare as compare_results
from orchestrator.cli.finish import finish_run, finished_results
from orchestrator.cli.options import JsonOption, MaxSlowdownOption
from orchestrator.cli.output import print_json, result
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from orchestrator.execution.run_folder import RunFolder, find_run
from reports.build import build_report
from reports.terminal import changes_table

RunArgument = Annotated[str, typer.Argument(help="Run id, 'latest', or a run's folder.")]


def compare(
    before: RunArgument,
    after: RunArgument,
    max_slowdown: MaxSlowdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs case by case: times, verdicts, output hashes, drivers. Provisional: two runs only.

    Example: tilefarm compare 20261130T010000Z-smoke-1a2b latest --max-slowdown 1.10
    """
    out = Settings().out
    results, previous = (finished_results(out, name) for name in (after, before))
    model = build_report(results, previous, datetime.now(UTC).date(), max_slowdown=max_slowdown)
    comparison = compare_results(previous, results)
    # As in the report: without a bound of the caller's, the one that the later run was started with.
    bound = model.max_slowdown
    slow = comparison.slowdowns(bound) if bound is not None else ()
    if as_json:
        print_json(_document(comparison, slow))
    else:
        result.print(changes_table(model))
    raise typer.Exit(1 if slow else 0)


def report(
    run: RunArgument = "latest", max_slowdown: MaxSlowdownOption = None, as_json: JsonOption = False
) -> None:
    """Write a run's report again from its results.json, as after an update of Tilefarm.

    Exit code as of the run itself.

    Example: tilefarm report latest
    """
    out = Settings().out
    results = finished_results(out, run)
    path = find_run(out, run)
    folder = RunFolder(path if path.is_dir() else path.parent)
    finished = finish_run(folder, results, out, datetime.now(UTC).date(), max_slowdown, newest=False)
    finished.print(as_json=as_json)
    raise typer.Exit(finished.summary.exit_code)


def _document(comparison: Comparison, slow: Sequence[Change]) -> dict[str, object]:
    """The comparison with what follows from it: ``ratio``, why there is none, ``notable``; and the slower."""
    document = json.loads(to_json(comparison))
    for change, written in zip(comparison.changes, document["changes"], strict=True):
        written |= {
            "ratio": change.ratio,
            "not_comparable": change.not_comparable,
            "notable": change.notable,
        }
    slower = [
        {"device_id": c.device_id, "case_id": c.case_id, "label": c.label, "ratio": c.ratio} for c in slow
    ]
    return {"comparison": document, "slower": slower}
