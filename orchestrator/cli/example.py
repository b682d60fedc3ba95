"""``tilefarm example``: a month of a farm that never was, with its reports."""

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.finish import Finished, finish_run
from orchestrator.cli.judged import CONFIRMATION
from orchestrator.cli.options import JsonOption, load_inputs
from orchestrator.cli.output import news, say
from orchestrator.domain.confirmation import Confirmation, Wanted
from orchestrator.domain.errors import UsageError
from orchestrator.domain.gate import Gate
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from orchestrator.execution.run_folder import RunFolder, write_atomically

if TYPE_CHECKING:
    from orchestrator.example.second_look import SecondLook

MARK = ".tilefarm-example"


def example(
    out: Annotated[
        Path, typer.Argument(help="Folder to make; an example that is there is made anew.")
    ] = Path("example"),
    seed: Annotated[int, typer.Option("--seed", help="One seed always makes the same month.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Make up thirty nights of a farm and judge each, as `tilefarm run` does: 5 SoCs, 12 phones, a new
    driver, a swapped phone, missed nights, slower and wrong kernels.

    What really happened is written to truth.md there; no device is used.

    Example: tilefarm example /tmp/example
    """
    # Loaded only here: their libraries take half a second.
    from orchestrator.example import matrix_file
    from orchestrator.example.month import Month
    from orchestrator.example.second_look import SecondLook
    from orchestrator.example.truth import told

    _make_room(out)
    inputs = load_inputs(matrix_file(), None)
    month = Month(inputs.matrix, inputs.kernels, seed)
    settings = Settings(out=out, database="", triage=out / "triage")
    finished: Finished | None = None
    with news.status("making up nights") as status:
        for results in month.nights():
            status.update(f"judging {results.run.night}")
            folder = RunFolder(out / "runs" / results.run.run_id)
            folder.path.mkdir(parents=True)
            write_atomically(folder.results_json, to_json(results))
            look = partial(_look_again, SecondLook(month, results), folder)
            today = datetime.now(UTC).date()
            finished = finish_run(folder, results, settings, today, Gate(), second_look=look)
    write_atomically(out / "truth.md", told())
    if finished is not None:
        finished.print(as_json=as_json)
    say(f"what really happened: {out / 'truth.md'}")


def _look_again(
    second: "SecondLook", folder: RunFolder, wanted: Sequence[Wanted], samples: int, unpaid: int
) -> Confirmation:
    found = second(wanted, samples, unpaid)
    write_atomically(folder.path / CONFIRMATION, to_json(found))
    return found


def _make_room(out: Path) -> None:
    """
    Raises:
        UsageError: something else is there.
    """
    if out.exists() and any(out.iterdir()) and not (out / MARK).is_file():
        raise UsageError(f"{out}: is no example of ours and not empty; choose another folder")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / MARK).touch()
