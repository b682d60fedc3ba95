"""What a precision that was asked for turned out to be on one device through one API."""

from dataclasses import dataclass
from typing import Literal

from orchestrator.domain.number import Number

Asked = Literal["highp", "mediump", "precise", "fp16", "storage16", "pack_half"]
"""highp and mediump (RelaxedPrecision on Vulkan) hints, NoContraction, 16-bit arithmetic, 16-bit types in
buffers, and packHalf2x16."""


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
    rounding: Literal["nearest-even", "toward-zero", "other", "unknown"]
    nan: Literal["kept", "lost"]
    inf: Literal["kept", "lost"]
    exp_underflow: Number
    """Smallest x of the probe for which exp(x) is still above 0."""
    delivered: Literal["fp32", "fp16", "other"]
    relative_speed: Number | None
    """Arithmetic rate over that of highp on the same device and API; None: not measured."""
    demoted: bool = False
    """More was asked for than came: a failure. The other way round is information."""
