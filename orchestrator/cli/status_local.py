"""Runs of this machine's OUT folder: which have ended, and how the others go on."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from rich.table import Table
from rich.text import Text

from orchestrator.cli.output import print_json, result
from orchestrator.domain.errors import UsageError, WireError
from orchestrator.domain.wire import from_json
from orchestrator.execution.run_folder import RunFolder, find_run
from reports.text import visible


@dataclass(frozen=True, slots=True)
class _Run:
    finished_at: str = ""


@dataclass(frozen=True, slots=True)
class _Results:
    """The part of results.json that matters here."""

    run: _Run


@dataclass(frozen=True, slots=True)
class LocalRun:
    run_id: str
    state: Literal["finished", "incomplete", "running", "cut off", "not readable"]
    next: str
    """Report, or what to do."""


def local_runs(out: Path, name: str | None, at_most: int | None, *, as_json: bool) -> None:
    """Print them, oldest first."""
    if name is not None:
        folders = [find_run(out, name)]
    else:
        folders = sorted(p.parent for p in (out / "runs").glob("[!.]*/manifest.json"))
        folders = folders[-at_most:] if at_most else folders
    found = [of_folder(folder) for folder in folders]
    if as_json:
        documents: list[Mapping[str, str]] = [asdict(run) for run in found]
        print_json({"out": str(out), "runs": documents})
        return
    table = Table(box=None, pad_edge=False)
    for column in ("run", "state", ""):
        table.add_column(column, overflow="fold")
    for run in found:
        table.add_row(*(Text(visible(word)) for word in (run.run_id, run.state, run.next)))
    result.print(table if found else Text(f"no run in {out / 'runs'}"))


def of_folder(path: Path) -> LocalRun:
    folder, run_id = RunFolder(path), path.name
    resume = f"tilefarm run --resume {run_id}"
    if _carried_out(folder):
        return LocalRun(run_id, "running", "a process carries it out now")
    if not folder.results_json.is_file():
        return LocalRun(run_id, "cut off", resume)
    try:
        results = from_json(_Results, folder.results_json.read_bytes(), str(folder.results_json))
    except (WireError, OSError) as e:
        return LocalRun(run_id, "not readable", str(e))
    if not results.run.finished_at:
        return LocalRun(run_id, "incomplete", f"results are missing: {resume}")
    return LocalRun(run_id, "finished", str(path / "index.html"))


def _carried_out(folder: RunFolder) -> bool:
    try:
        with folder.only_one():
            return False
    except UsageError:
        return True
    except OSError:
        return False  # results of a run without its manifest: nothing can carry it out
