"""``tilefarm db``: the history of all runs, put in, proven, tidied and read out."""

import csv
import sys
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.history import open_history
from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import print_json, result, say
from orchestrator.cli.person import person
from orchestrator.domain.errors import UsageError
from orchestrator.domain.settings import Settings
from orchestrator.execution.run_folder import find_run, load_results

if TYPE_CHECKING:
    from orchestrator.history.history import Fault

EXIT_FAULTS = 3
db = typer.Typer(help="The history of all runs: store, check, compact, pin, export.", no_args_is_help=True)


@db.command()
def store(
    runs: Annotated[list[str] | None, typer.Argument(help="Run ids; none: every run in OUT/runs.")] = None,
) -> None:
    """Put runs into the history; one that is in already is left as it is.

    A run that ends is stored by itself: this is for runs of earlier versions and of other hosts.

    Example: tilefarm db store 20261201T010000Z-nightly-4c1f
    """
    from orchestrator.history.usual import usual_clocks  # takes a while to load

    settings = Settings()
    history = open_history(settings)
    names = runs or sorted(p.parent.name for p in (settings.out / "runs").glob("*/results.json"))
    stored = 0
    try:
        for name in names:
            try:
                results = load_results(find_run(settings.out, name))
                stored += history.store(results, usual_clocks(history, results))
            except UsageError as e:
                if runs:
                    raise
                say(f"left out: {e}")
    finally:
        history.close()
    judge = "; `tilefarm report RUN`, oldest first, judges them" if stored else ""
    say(f"{stored} of {len(names)} runs are new in the history{judge}")


@db.command()
def check(as_json: JsonOption = False) -> None:
    """Prove every file of the history by its digest, and find what nothing refers to.

    Exit code 3 when something is wrong.

    Example: tilefarm db check
    """
    history = open_history(Settings())
    try:
        runs, faults = history.runs(), history.check()
    finally:
        history.close()
    if as_json:
        print_json(
            {
                "runs": len(runs),
                "faults": [{"what": f.what, "why": f.why, "repair": f.repair} for f in faults],
            }
        )
    else:
        for fault in faults:
            result.print(_told(fault), markup=False, soft_wrap=True)
        result.print(
            f"{len(runs)} runs, {sum(r.rows for r in runs)} trials, {len(faults)} faults", markup=False
        )
    raise typer.Exit(EXIT_FAULTS if faults else 0)


@db.command()
def compact(
    keep_samples_days: Annotated[
        int | None,
        typer.Option(min=1, help="Drop raw samples of older runs; summaries and pinned runs stay."),
    ] = None,
) -> None:
    """Remove files that no run refers to, and raw samples that are old enough.

    A damaged file is left as it is, and told: exit code 3.

    Example: tilefarm db compact --keep-samples-days 400
    """
    history = open_history(Settings())
    try:
        removed = history.compact()
        dropped: list[str] = []
        faults: list[Fault] = []
        if keep_samples_days is not None:
            before = datetime.now(UTC) - timedelta(days=keep_samples_days)
            dropped, faults = history.drop_samples(before.isoformat(timespec="seconds"))
    finally:
        history.close()
    for fault in faults:
        result.print(f"left as it is: {_told(fault)}", markup=False, soft_wrap=True)
    say(f"{len(removed)} files removed; raw samples of {len(dropped)} runs dropped")
    raise typer.Exit(EXIT_FAULTS if faults else 0)


@db.command()
def pin(
    name: Annotated[str, typer.Argument(help="Of the baseline, e.g. release-2.1.")],
    run_id: Annotated[str, typer.Argument(help="Run that it stands for.")],
    note: Annotated[str, typer.Option("--note", help="For those who find it.")] = "",
) -> None:
    """Keep a run as a baseline by name: its samples outlive retention, and drift is told against it.

    Example: tilefarm db pin release-2.1 20261201T010000Z-nightly-4c1f
    """
    history = open_history(Settings())
    try:
        history.baselines.pin(name, run_id, person(), note)
    finally:
        history.close()
    say(f"{name}: run {run_id}")


@db.command()
def unpin(
    name: Annotated[str, typer.Argument(help="Of the baseline, as `tilefarm db pins` lists it.")],
) -> None:
    """Give a name back: the run that had it is like any other again.

    Example: tilefarm db unpin release-2.1
    """
    history = open_history(Settings())
    try:
        run_id = history.baselines.unpin(name)
    finally:
        history.close()
    say(f"{name}: no longer run {run_id}")


@db.command()
def pins(as_json: JsonOption = False) -> None:
    """List the baselines that have a name, with who pinned them and why.

    Example: tilefarm db pins
    """
    history = open_history(Settings())
    try:
        found = history.baselines.all()
    finally:
        history.close()
    if as_json:
        print_json({"baselines": [asdict(one) for one in found]})
        return
    for one in found:
        note = f": {one.note}" if one.note else ""
        line = f"{one.name}: run {one.run_id}, pinned by {one.by} at {one.pinned_at}{note}"
        result.print(line, markup=False, soft_wrap=True)
    if not found:
        result.print("No baseline has a name. `tilefarm db pin NAME RUN` gives one", markup=False)


@db.command()
def export(
    device_id: Annotated[str, typer.Argument(help="As `tilefarm devices` names it.")],
    case_id: Annotated[str, typer.Argument(help="As reports and `tilefarm plan` name it.")],
    as_csv: Annotated[bool, typer.Option("--csv", help="Without raw samples, for a spreadsheet.")] = False,
) -> None:
    """Print one series, oldest night first: every trial of a case on a device, raw samples included.

    Example: tilefarm db export pixel-8-0a1b2c3d 4f0c6ef8d1e2a3b4 > series.json
    """
    from orchestrator.history.query import one_series  # takes a while to load

    history = open_history(Settings())
    try:
        files = [history.path(r) for r in history.runs()]
        rows = one_series(files, device_id, case_id, samples=not as_csv)
    finally:
        history.close()
    if not rows:
        raise UsageError(
            f"no trial of case {case_id} on device {device_id} is in the history; `tilefarm devices` and "
            "`tilefarm plan --json` show the ids that there are"
        )
    if as_csv:
        writer = csv.DictWriter(sys.stdout, list(rows[0]))
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
        return
    trials = [{name: _json(value) for name, value in row.items()} for row in rows]
    print_json({"device_id": device_id, "case_id": case_id, "trials": trials})


def _cell(value: object) -> object:
    """A spreadsheet must not take a driver's text for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def _json(value: object) -> object:
    """Without NaN or Infinity literals, as everywhere."""
    return str(value) if isinstance(value, float) and value * 0 != 0 else value


def _told(fault: "Fault") -> str:
    return f"{fault.what}: {fault.why}. Next: {fault.repair}"
