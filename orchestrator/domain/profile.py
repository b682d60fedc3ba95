"""What a device's GPU can do through one API, as probed on it."""

from dataclasses import dataclass, field

SOFTWARE_RENDERERS = ("llvmpipe", "lavapipe", "swiftshader", "softpipe")
"""Drivers that execute on the host's processor."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Limits, features and driver of one API on one device (the runner's ``profile`` record)."""

    api: str
    vendor: str
    renderer: str
    version: str
    glsl: str = ""
    library: str = ""
    """Path of the driver library that was really loaded."""
    limits: dict[str, int] = field(default_factory=dict[str, int])
    extensions: list[str] = field(default_factory=list[str])
    features: dict[str, bool] = field(default_factory=dict[str, bool])
    """True only where a probe shader that uses the feature compiled and ran."""
    timer_bits: int = 0
    imposed: bool = False
    """Limits were lowered on purpose (a virtual phone)."""
    imposed_limits: list[str] = field(default_factory=list[str])

    @property
    def software(self) -> bool:
        """True when the driver executes on the host's processor, which all such drivers of a host share."""
        return any(name in self.renderer.casefold() for name in SOFTWARE_RENDERERS)
