"""A device: one GPU reached through a transport, with the facts that were read from it."""

from dataclasses import dataclass, field
from typing import Literal

from orchestrator.domain.profile import Profile


@dataclass(frozen=True, slots=True)
class Soc:
    """Vendor and model, with the evidence it was concluded from."""

    name: str
    """e.g. ``SM8650``, ``Tensor-G2``, ``llvmpipe``; ``unknown-…`` when evidence is missing or conflicts."""
    vendor: str
    model: str
    source: str
    """Which property or string said so, e.g. ``ro.soc.model``."""
    confidence: Literal["certain", "likely", "guess", "unknown"]


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """One device as a worker registers it and as results.json keeps it."""

    device_id: str
    """Internal id, ``[a-z0-9-]+``: the only name used in queues, files and Redis keys."""
    transport: Literal["local", "adb"]
    serial: str
    """As adb lists it (any characters), or the host's name for ``local``."""
    name: str
    """For people: model or renderer."""
    soc: Soc
    profiles: list[Profile]
    resource: str
    """Processor shared with other devices, e.g. ``cpu@host``; trials on one are serialised."""
    host: str
    os_build: str = ""
    virtual: bool = False
    """A virtual phone: real runner and driver of this host under a phone's declared limits."""
    health: dict[str, str] = field(default_factory=dict[str, str])
    """Battery, temperature, screen and thermal status when it registered."""

    def profile(self, api: str) -> Profile | None:
        return next((p for p in self.profiles if p.api == api), None)

    def software(self, api: str) -> bool:
        """Through this API its driver executes on the host's processor."""
        profile = self.profile(api)
        return profile is not None and profile.software
