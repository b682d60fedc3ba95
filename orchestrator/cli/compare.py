"""``tilefarm compare A B`` and ``tilefarm report``: reading runs that are on disk."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.analysis.summary import EXIT_OK, EXIT_WRONG
from orchestrator.cli.artifacts import check_room, copy_report
from orchestrator.cli.finish import finish_run, finished_results
from orchestrator.cli.github import tell_github
from orchestrator.cli.options import (
    ArtifactsOption,
    FailOnOption,
    GithubOption,
    JsonOption,
    MaxSlowdownOption,
)
from orchestrator.cli.output import print_json, result, say
from orchestrator.domain.errors import UsageError
from orchestrator.domain.gate import Gate
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from orchestrator.execution.run_folder import RunFolder, find_run, write_atomically
from reports.build import build_report
from reports.comparison import render_comparison
from reports.model import ReportModel
from reports.terminal import changes_table, one_sided_lines

RunArgument = Annotated[str, typer.Argument(help="Run id, 'latest', or a run's folder.")]


def compare(
    before: RunArgument,
    after: RunArgument,
    max_slowdown: MaxSlowdownOption = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the comparison as one self-contained page, too.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs case by case: times, verdicts, output hashes, drivers. Provisional: two runs only.

    Example: tilefarm compare 20261130T010000Z-smoke-1a2b latest --max-slowdown 1.10 --html compare.html
    """
    out = Settings().out
    results, previous = (finished_results(out, name) for name in (after, before))
    model = build_report(results, previous, datetime.now(UTC).date(), max_slowdown=max_slowdown)
    if html is not None:
        _write_page(html, model)
    if as_json:
        print_json(_document(model))
    else:
        result.print(changes_table(model))
        result.print(one_sided_lines(model))
    raise typer.Exit(EXIT_WRONG if model.slow else EXIT_OK)


def report(
    run: RunArgument = "latest",
    max_slowdown: MaxSlowdownOption = None,
    fail_on: FailOnOption = None,
    artifacts: ArtifactsOption = None,
    github: GithubOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a run's report again from its results.json, as after an update of Tilefarm.

    Exit code as of the run itself, unless --max-slowdown or --fail-on say otherwise.

    Example: tilefarm report latest
    """
    check_room(artifacts)
    settings = Settings()
    results = finished_results(settings.out, run)
    path = find_run(settings.out, run)
    folder = RunFolder(path if path.is_dir() else path.parent)
    gate = Gate(max_slowdown, fail_on)
    finished = finish_run(folder, results, settings, datetime.now(UTC).date(), gate, newest=False)
    copy_report(folder.path, artifacts)  # first: who reads the answer may leave early
    tell_github(finished, github)
    finished.print(as_json=as_json)
    raise typer.Exit(finished.summary.exit_code)


def _write_page(path: Path, model: ReportModel) -> None:
    try:
        write_atomically(path, render_comparison(model))
    except OSError as e:
        why = e.strerror or str(e)
        raise UsageError(f"--html {path}: {why}. Name a file in a folder that exists and is yours") from e
    say(f"comparison: {path}")


def _document(model: ReportModel) -> dict[str, object]:
    """The comparison with what follows from it: ``ratio``, why there is none, ``notable``; and the slower."""
    changes = model.comparison.changes if model.comparison is not None else ()
    document = json.loads(to_json(model.comparison))
    for change, written in zip(changes, document["changes"], strict=True):
        written |= {
            "ratio": change.ratio,
            "not_comparable": change.not_comparable,
            "notable": change.notable,
        }
    slower = [
        {"device_id": c.device_id, "case_id": c.case_id, "label": c.label, "ratio": c.ratio}
        for c in model.slow
    ]
    return {"comparison": document, "slower": slower}
