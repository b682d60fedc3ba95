"""What a run's dispatcher says of it in Redis: for `status`, `watch`, `queue`, and for a fair share."""

from dataclasses import dataclass, field
from typing import Literal

from orchestrator.domain.names import Lane

Phase = Literal["submitted", "preparing", "running", "finished", "failed", "cancelled"]
ENDED: tuple[Phase, ...] = ("finished", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Target:
    """Work of a run for one device, or for any phone of a SoC."""

    device_id: str
    """Empty: any phone of ``soc``."""
    soc: str
    name: str
    """For people."""
    total: int
    """Cases."""
    done: int = 0
    lost: int = 0
    """Cases that are waited for no more."""
    flying: int = 0
    """Cases of batches that were sent and whose results are not in."""
    left_s: float = 0.0
    """Estimated device time of what is not done."""
    waiting_since: str = ""
    """UTC, ISO 8601: since when no batch of it has begun; empty while one runs."""
    why: str = ""
    """What its worker waits for, or why it was given up."""
    devices: list[str] = field(default_factory=list[str])
    """Ids of the devices that may do it."""

    @property
    def left(self) -> int:
        """Cases that somebody still waits for."""
        return self.total - self.done - self.lost


@dataclass(frozen=True, slots=True)
class RunState:
    run_id: str
    suite: str
    user: str
    lane: Lane
    phase: Phase
    started_at: str
    """UTC, ISO 8601: orders a user's runs."""
    updated_at: str
    host: str
    """Where its dispatcher lives."""
    targets: list[Target] = field(default_factory=list[Target])
    verdict: str = ""
    """One sentence, once it has ended."""
    exit_code: int | None = None
    report: str = ""
    """Path of the report's index on ``host``."""
    why: str = ""
    """Of ``failed`` and ``cancelled``."""
    live: bool = field(default=False, compare=False)
    """A process carries it out now; filled in by whoever reads it."""
