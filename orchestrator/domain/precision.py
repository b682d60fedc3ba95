"""What a precision that was asked for turned out to be on one device through one API."""

from dataclasses import dataclass, field
from typing import Literal

from orchestrator.domain.number import Number

Asked = Literal["highp", "mediump", "precise", "fp16", "storage16", "pack_half"]
"""highp and mediump (RelaxedPrecision on Vulkan) hints, NoContraction, 16-bit arithmetic, 16-bit types in
buffers, and packHalf2x16."""

Rounding = Literal["nearest-even", "toward-zero", "other", "unknown"]


@dataclass(frozen=True, slots=True)
class Precision:
    """Found by ``kernels/precision_probe`` from the raw bits of what a shader computed."""

    device_id: str
    api: str
    asked: Asked
    mantissa_bits: int
    """Explicit ones: 23 for fp32, 10 for fp16."""
    largest: Number
    """Largest finite value that survived."""
    subnormals: Literal["kept", "flushed", "unknown"]
    rounding: Rounding
    """Of sums."""
    nan: Literal["kept", "lost"]
    inf: Literal["kept", "lost"]
    exp_underflow: Number
    """Smallest x of the probe for which exp(x) is still above 0."""
    delivered: Literal["fp32", "fp16", "other"]
    relative_speed: Number | None
    """Arithmetic rate over that of highp on the same device and API; None: not measured."""
    demoted: bool = False
    """More was asked for than came: a failure. The other way round is information."""
    conversion: Rounding = "unknown"
    """Of fp32 values that become 16 bits wide; unknown where nothing is converted."""
    contraction: Literal["fused", "separate", "unknown"] = "unknown"
    """Whether x·y + z rounds once (fused) or twice."""
    max_nan: Literal["nan", "number", "mixed", "unknown"] = "unknown"
    """What max(NaN, 1) and max(1, NaN) give: never a way to find NaN."""
    remarks: list[str] = field(default_factory=list[str])
    """What came out otherwise than arithmetic has it, e.g. ``exp(-1000) gives NaN``; for people."""
