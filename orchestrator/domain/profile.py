"""What a device's GPU can do through one API, as probed on it."""

from dataclasses import dataclass, field

SOFTWARE_RENDERERS = ("llvmpipe", "lavapipe", "swiftshader", "softpipe")
"""Drivers that execute on the host's processor."""


@dataclass(frozen=True, slots=True)
class SubgroupFacts:
    """Invocations that execute together; 0 where unknown."""

    advertised: int = 0
    measured: int = 0
    """Counted by a probe shader with a ballot."""
    min: int = 0
    max: int = 0
    """Sizes that a shader may ask for; both 0 without size control."""


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
    adapter: str = ""
    """How the runner finds this GPU among several (Vulkan: ``DRIVER_ID-DEVICE_UUID``); empty on GLES."""
    device_type: str = ""
    """Vulkan: cpu, integrated, discrete, virtual or other."""
    driver: dict[str, str] = field(default_factory=dict[str, str])
    """Vulkan: id, name, info, conformance."""
    extensions: list[str] = field(default_factory=list[str])
    advertised: dict[str, bool] = field(default_factory=dict[str, bool])
    """What the driver claims, each capability a fact of its own (arithmetic, storage, uniforms, …)."""
    features: dict[str, bool] = field(default_factory=dict[str, bool])
    """True only where a probe shader that uses the feature compiled and ran."""
    unproven: dict[str, str] = field(default_factory=dict[str, str])
    """Advertised, and its probe shader failed: feature → why."""
    subgroup: SubgroupFacts = SubgroupFacts()
    float_controls: dict[str, bool] = field(default_factory=dict[str, bool])
    """Vulkan: which float behaviours a shader may ask for, as the driver declares them."""
    matrices: list[str] = field(default_factory=list[str])
    """Cooperative matrix shapes: ``MxNxK A B C R``, e.g. ``16x16x16 f16 f16 f32 f32``."""
    timer_bits: int = 0
    timer_period_ns: float = 0.0
    imposed: bool = False
    """Limits were lowered on purpose (a virtual phone)."""
    imposed_limits: list[str] = field(default_factory=list[str])

    @property
    def driver_text(self) -> str:
        """As trials name the driver that executed them (``Trial.driver``)."""
        return f"{self.renderer}; {self.version}"

    @property
    def software(self) -> bool:
        """True when the driver executes on the host's processor, which all such drivers of a host share."""
        return self.device_type == "cpu" or any(
            name in self.renderer.casefold() for name in SOFTWARE_RENDERERS
        )
