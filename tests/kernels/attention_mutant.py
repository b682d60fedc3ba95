"""What a broken attention kernel is: its edits, the case that shows it, and the rows that it must break."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.domain.case import AxisValue
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.broken import Edit, load_broken

Rows = Callable[[int, int], bool]
"""(head, row) → whether that output row cannot survive on the mutant's case."""


def everywhere(head: int, row: int) -> bool:
    del head, row
    return True


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    fault: str
    edits: tuple[Edit, ...]
    workload: dict[str, AxisValue]
    inputs: str = "normal"
    breaks: Rows = everywhere
    axes: dict[str, AxisValue] = field(default_factory=dict[str, AxisValue])
    unwritten: bool = False
    """Some elements keep the prefilled pattern."""
    race: bool = False
    """Which rows do break depends on the order. On llvmpipe, which runs groups of 4 or 8 invocations one
    after another from barrier to barrier, it is some of those in ``breaks``."""

    @property
    def kernel(self) -> str:
        own = [file for file, _, _ in self.edits if not file.startswith("_")]
        return own[0].split("/")[0] if own else "attention_flash"

    def load(self, folder: Path) -> LoadedKernel:
        return load_broken(folder / self.name, self.kernel, self.edits)
