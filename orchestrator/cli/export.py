"""``tilefarm export``: the tuning table that an app ships."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestrator.analysis.words import plural
from orchestrator.cli.history import open_history
from orchestrator.cli.output import say
from orchestrator.domain.best import Chosen
from orchestrator.domain.errors import UsageError
from orchestrator.domain.settings import Settings
from orchestrator.domain.tuning import Tuning
from orchestrator.domain.wire import to_json
from orchestrator.execution.run_folder import find_run, load_results, write_atomically
from reports.text import shell_word, visible

if TYPE_CHECKING:
    from orchestrator.history.database import StoredRun
    from orchestrator.history.history import History

Format = Literal["json", "c"]


def _number(value: float | None) -> float | None:
    if value is not None and not 0 <= value < float("inf"):
        raise UsageError(f"--max-nmse {value}: a number of 0 or more, e.g. 1e-6")
    return value


def export(
    run: Annotated[
        str | None,
        typer.Argument(help="Newest run to look at: its id, 'latest', or its folder. Default: the newest."),
    ] = None,
    suite: Annotated[
        str | None, typer.Option("--suite", help="Newest whole run of this suite instead of RUN.")
    ] = None,
    soc: Annotated[list[str] | None, typer.Option("--soc", help="Only this SoC. Repeatable.")] = None,
    precision: Annotated[
        list[str] | None,
        typer.Option("--precision", help="Choose from variants of this precision. Repeatable."),
    ] = None,
    max_nmse: Annotated[
        float | None,
        typer.Option("--max-nmse", callback=_number, help="Choose from variants with no larger error."),
    ] = None,
    as_format: Annotated[
        Format, typer.Option("--format", help="json (docs/tuning.schema.json) or c, a header for C and C++.")
    ] = "json",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; without it the table is printed.")
    ] = None,
) -> None:
    """Write the best variants as a table that an app ships: per SoC, workload and API, with a fallback for
    SoCs that were not measured.

    One history gives one table, byte for byte. docs/tuning.md says what the numbers mean.

    Example: tilefarm export --suite nightly --precision fp32 --format c --output tilefarm_tuning.h
    """
    # Loaded only here: their libraries take half a second.
    from orchestrator.analysis.best.table import tuning_table
    from orchestrator.verdicts.best import Wanted, best_variants

    if run is not None and suite is not None:
        raise UsageError("RUN and --suite both name the newest run; leave one of them out")
    settings = Settings()
    chosen = Chosen(sorted(set(precision or [])), max_nmse)
    history = open_history(settings)
    try:
        newest = _newest(history, settings, run, suite)
        file = settings.out / "runs" / newest.run_id / "results.json"
        results = load_results(file) if file.is_file() else None
        best = best_variants(
            history, newest.suite, newest.run_id, results, Wanted(sorted(set(soc or [])), chosen)
        )
    finally:
        history.close()
    table = tuning_table(best, _command(newest.run_id, best_socs=soc, chosen=chosen, as_format=as_format))
    if not table.entries:
        whys = sorted({left.why for s in best.socs for w in s.workloads for left in w.left_out})
        why = "; ".join(whys[:3]) or "none was measured"
        raise UsageError(f"run {newest.run_id}: no variant is left to choose from: {why}")
    _write(table, as_format, output)
    warned = sum(bool(e.warnings) for e in table.entries)
    say(
        f"{len(table.entries)} entries for {plural(len(table.socs), 'SoC')}"
        + (f"; {warned} have warnings, which the table names" if warned else "")
    )


def _newest(history: "History", settings: Settings, run: str | None, suite: str | None) -> "StoredRun":
    """
    Raises:
        UsageError: no such run, or it ran a part of a suite.
    """
    runs = history.runs(suite or "")
    if run is not None:
        known = {r.run_id: r for r in runs}
        name = run if run in known else find_run(settings.out, run).name
        if name not in known:
            raise UsageError(f"run {name}: not in the history; `tilefarm db store {name}` puts it in")
        if not known[name].whole_suite:
            raise UsageError(f"run {name}: it ran a part of suite {known[name].suite}; name a whole one")
        return known[name]
    whole = [r for r in runs if r.whole_suite]
    if not whole:
        named = f" of suite {suite!r}" if suite else ""
        raise UsageError(f"no whole run{named} is in the history of {settings.out}; `tilefarm run` makes one")
    return whole[-1]


def _command(run_id: str, best_socs: list[str] | None, chosen: Chosen, as_format: Format) -> str:
    words = ["tilefarm", "export", run_id]
    for soc in sorted(set(best_socs or [])):
        words += ["--soc", soc]
    for precision in chosen.precisions:
        words += ["--precision", precision]
    if chosen.max_nmse is not None:
        words += ["--max-nmse", repr(float(chosen.max_nmse))]
    return " ".join(shell_word(word) for word in [*words, "--format", as_format])


def _write(table: Tuning, as_format: Format, output: Path | None) -> None:
    if as_format == "c":
        from reports.tuning.c_header import render_c_header

        text = render_c_header(table)
    else:
        text = json.dumps(json.loads(to_json(table)), indent=1, allow_nan=False) + "\n"
    if output is None:
        sys.stdout.write(text)
        return
    if not output.parent.is_dir():
        raise UsageError(f"{visible(str(output))}: its folder is not there; make it, or choose another one")
    write_atomically(output, text)
