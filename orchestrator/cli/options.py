"""Options that several commands share, and the matrix and kernels that they point to."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.domain.errors import KernelFolderError, UsageError
from orchestrator.domain.gate import FailOn
from orchestrator.domain.kernel import Kernel
from orchestrator.execution.kernel_checks import check_sample
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernels
from orchestrator.planning.matrix import Matrix
from orchestrator.planning.matrix_reader import MAX_PHONES, load_matrix

SuiteOption = Annotated[str, typer.Option("--suite", help="Suite of matrix.yaml.")]
MatrixOption = Annotated[Path, typer.Option("--matrix", help="The matrix file.")]
KernelsOption = Annotated[
    list[Path] | None,
    typer.Option("--kernels", help="Another folder of kernels, beside the built-in ones. Repeatable."),
]
SelectOption = Annotated[
    str | None,
    typer.Option("-k", help="Selection, e.g. 'attention_flash and precision=fp16_storage and seq>=512'."),
]
CaseOption = Annotated[
    list[str] | None, typer.Option("--case", help="Only the case with this id. Repeatable.")
]
DeviceOption = Annotated[
    list[str] | None,
    typer.Option("--device", help="Serial, device id, SoC, or 'local'. Repeatable. Default: every device."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="axis=value[,value] instead of the matrix's values. Repeatable."),
]


def _factor(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 1):
        raise UsageError(f"--max-slowdown {value}: a factor above 1, e.g. 1.10 for ten per cent")
    return value


MaxSlowdownOption = Annotated[
    float | None,
    typer.Option(
        "--max-slowdown",
        callback=_factor,
        help="Exit 1 when a case got slower than in the run before by more than this factor, e.g. 1.10.",
    ),
]
FailOnOption = Annotated[
    FailOn | None,
    typer.Option(
        "--fail-on",
        help="What makes the exit code 1. wrong: kernels that are wrong (so without this option); regressed: "
        "also what got slower or less exact than the history, and nobody has dealt with; never: nothing.",
    ),
]
ConfirmOption = Annotated[
    bool,
    typer.Option(
        "--confirm/--no-confirm",
        help="At the end of a whole suite, measure what seems slower or faster than the history once more.",
    ),
]
GithubOption = Annotated[
    bool | None,
    typer.Option(
        "--github/--no-github",
        help="Annotations for GitHub Actions on stderr, and the Markdown in the job's summary. Default: in "
        "its jobs only.",
    ),
]
ArtifactsOption = Annotated[
    Path | None,
    typer.Option(
        "--artifacts",
        help="Copy the report there at the end, for CI to keep; an earlier copy is replaced.",
    ),
]
ProbesOption = Annotated[
    bool,
    typer.Option(
        "--probes/--no-probes",
        help="Measure each device with the matrix's probes, and guard it by its canary.",
    ),
]
PhonesOption = Annotated[
    int | None,
    typer.Option(
        "--phones",
        min=0,
        max=MAX_PHONES,
        help="Run each case on so many phones of each SoC, 0: on all of them. Default: what the suite says, "
        "and on all that --device names.",
    ),
]
NightlyOption = Annotated[bool, typer.Option("--nightly", help="Queue behind on-demand runs.")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, for scripts.")]


def phones_wanted(phones: int | None, device: list[str] | None) -> int | None:
    """For ``build_plan``. Who names devices means each of them, whatever the suite says of their SoCs."""
    return 0 if phones is None and device else phones


BUILT_IN_KERNELS = Path(__file__).resolve().parents[2] / "kernels"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the person gave us, loaded and checked before any device is touched."""

    matrix: Matrix
    loaded: dict[str, LoadedKernel]

    @property
    def kernels(self) -> dict[str, Kernel]:
        return {name: found.kernel for name, found in self.loaded.items()}


def load_all_kernels(extra: list[Path] | None) -> dict[str, LoadedKernel]:
    """Built-in kernels and those of further folders, of which a small case is rendered, too.

    Raises:
        KernelFolderError: a folder cannot be loaded, or two kernels share a name.
    """
    loaded: dict[str, LoadedKernel] = {}
    for folder in [BUILT_IN_KERNELS, *(extra or [])]:
        for name, found in load_kernels(folder).items():
            if folder is not BUILT_IN_KERNELS:
                check_sample(found)
            if name in loaded:
                raise KernelFolderError(
                    f"{found.folder}: a kernel named {name} was loaded from {loaded[name].folder}; "
                    "rename one of them"
                )
            loaded[name] = found
    return loaded


def load_inputs(matrix: Path, kernels: list[Path] | None) -> Inputs:
    """Matrix and kernels, all their errors in one go."""
    loaded = load_all_kernels(kernels)
    today = datetime.now(UTC).date()
    return Inputs(load_matrix(matrix, {n: k.kernel for n, k in loaded.items()}, today), loaded)
