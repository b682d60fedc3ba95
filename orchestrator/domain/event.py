"""What workers tell the orchestrator while they work, beside trials."""

from dataclasses import dataclass
from typing import Literal

from orchestrator.domain.device import DeviceRecord


@dataclass(frozen=True, slots=True)
class Progress:
    """Unverified news for live display and for noticing a stall; never a result."""

    device_id: str
    state: Literal["batch", "waiting", "started", "ended"]
    case_id: str = ""
    detail: str = ""
    planned_for: str = ""
    """As in Trial."""

    @property
    def target(self) -> str:
        return self.planned_for or self.device_id


@dataclass(frozen=True, slots=True)
class Registration:
    """A device that a living worker serves; renewed every few seconds, gone when the worker dies."""

    record: DeviceRecord
    worker_id: str
    """New at every start of a worker: tells a restarted one from the one that held lost work."""
    started_at: str
    pid: int
