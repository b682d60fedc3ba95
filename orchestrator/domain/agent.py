"""What a host's agent tells the farm about its phones, and what workers tell their host's agent."""

from dataclasses import dataclass, field

from orchestrator.domain.health import Condition, Failed, Vitals, Vouched

News = Vitals | Failed | Vouched
"""Of a worker about its device. Times are of its own clock: the agent puts its own in their place."""


@dataclass(frozen=True, slots=True)
class PhoneReport:
    serial: str
    """As adb lists it."""
    device_id: str
    """Empty until a worker has opened it."""
    condition: Condition
    why: str
    since: str
    """UTC, ISO 8601."""
    until: str = ""
    """End of a quarantine, likewise."""
    trusted: bool = False
    vitals: Vitals | None = None
    network: bool = False
    """Its serial is an address that the host's adb server may be asked to connect to; agents of before say
    nothing of it."""


@dataclass(frozen=True, slots=True)
class AgentReport:
    """Renewed every few seconds, gone when the agent is."""

    host: str
    pid: int
    started_at: str
    adb: str
    """Address and version of the adb server, or why there is none."""
    phones: list[PhoneReport] = field(default_factory=list[PhoneReport])
