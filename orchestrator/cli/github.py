"""A run's end as a job of GitHub Actions shows it: annotations, and the Markdown in the job's summary."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from orchestrator.cli.finish import Finished
from orchestrator.cli.options import BUILT_IN_KERNELS
from orchestrator.cli.output import say
from orchestrator.domain.results import RunInfo
from orchestrator.planning.kernel_folder import KERNEL_FILE
from reports.machines.github import commands
from reports.model import ReportModel

TEMPLATES = "*.comp.j2"


def tell_github(finished: Finished, wanted: bool | None, environ: Mapping[str, str] = os.environ) -> None:
    """On stderr, which GitHub reads too: stdout is the command's answer.

    Args:
        wanted: None: in a job of GitHub Actions only.
    """
    here = environ.get("GITHUB_ACTIONS") == "true"
    if not (here if wanted is None else wanted):
        return
    model = finished.reports.model
    root = Path(environ.get("GITHUB_WORKSPACE") or ".").resolve()
    for line in commands(model, kernel_files(model, root)):
        sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
    if summary := environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(finished.reports.summary.read_text("utf-8"))
        except OSError as e:
            own = finished.reports.summary
            say(f"warning: GITHUB_STEP_SUMMARY={summary}: {e.strerror}; the summary is {own}")


def kernel_files(model: ReportModel, root: Path) -> dict[str, str]:
    """Kernel → its template, or its kernel.py where it has several, from ``root``; none that is elsewhere."""
    names = {t.info.case.kernel for t in model.trials}
    found: dict[str, str] = {}
    for kernel in names:
        for folder in _folders(model.run):
            own = (folder / kernel).resolve()
            templates = sorted(own.glob(TEMPLATES))
            file = templates[0] if len(templates) == 1 else own / KERNEL_FILE
            if file.is_file() and file.is_relative_to(root) and own.parent == folder:
                found[kernel] = file.relative_to(root).as_posix()
    return found


def _folders(run: RunInfo) -> list[Path]:
    return [BUILT_IN_KERNELS, *(Path(k).resolve() for k in run.kernels)]
