"""What makes a run's exit code 1, as a person or CI asked for it (decision 0038)."""

from dataclasses import dataclass
from typing import Literal

FailOn = Literal["wrong", "regressed", "never"]
"""Wrong kernels; also what got slower or less exact than the history; nothing."""


@dataclass(frozen=True, slots=True)
class Gate:
    """None: as the run was started with."""

    max_slowdown: float | None = None
    """Ratio to the run before (1.10: ten per cent)."""
    fail_on: FailOn | None = None
