"""``tilefarm compare A B`` and ``tilefarm report``: reading runs that are on disk."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.analysis.compare import compare as compare_results
from orchestrator.cli.finish import finish_run
from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import print_json, result
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from orchestrator.execution.run_folder import RunFolder, find_run, load_results
from reports.build import build_report
from reports.terminal import changes_table

RunArgument = Annotated[str, typer.Argument(help="Run id, 'latest', or a run's folder.")]
MaxSlowdown = Annotated[
    float | None,
    typer.Option("--max-slowdown", help="Exit 1 when a case got slower by more than this factor."),
]


def compare(
    before: RunArgument, after: RunArgument, max_slowdown: MaxSlowdown = None, as_json: JsonOption = False
) -> None:
    """Compare two runs case by case: times, verdicts, output hashes, drivers. Provisional: two runs only.

    Example: tilefarm compare 20261130T010000Z-smoke-1a2b latest --max-slowdown 1.10
    """
    out = Settings().out
    results, previous = (load_results(find_run(out, name)) for name in (after, before))
    model = build_report(results, previous, datetime.now(UTC).date(), max_slowdown=max_slowdown)
    comparison = compare_results(previous, results)
    slow = comparison.slowdowns(max_slowdown) if max_slowdown is not None else ()
    if as_json:
        print_json({"comparison": json.loads(to_json(comparison)), "slower": len(slow)})
    else:
        result.print(changes_table(model))
    raise typer.Exit(1 if slow else 0)


def report(
    run: RunArgument = "latest", max_slowdown: MaxSlowdown = None, as_json: JsonOption = False
) -> None:
    """Write a run's report again from its results.json, as after an update of Tilefarm.

    Exit code as of the run itself.

    Example: tilefarm report latest
    """
    out = Settings().out
    path: Path = find_run(out, run)
    folder = RunFolder(path if path.is_dir() else path.parent)
    finished = finish_run(
        folder, load_results(path), out, datetime.now(UTC).date(), max_slowdown, newest=False
    )
    finished.print(as_json=as_json)
    raise typer.Exit(finished.summary.exit_code)
