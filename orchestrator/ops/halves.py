"""What the axes ``precision`` and ``halves`` mean wherever a kernel has them (decision 0016)."""

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import DType


def is_half(case: Case) -> bool:
    """Inputs and outputs are fp16 in memory."""
    return case.axes["precision"] != "fp32"


def is_native(case: Case) -> bool:
    """They are so by 16-bit types, not packed in pairs."""
    return case.axes.get("halves") == "native"


def computes_in_half(case: Case) -> bool:
    """Products are 16-bit arithmetic."""
    return case.axes["precision"] in ("fp16", "fp16_all")


def storage_dtype(case: Case) -> DType:
    return "f16" if is_half(case) else "f32"


def element_bytes(case: Case) -> int:
    return 2 if is_half(case) else 4


def tile_features(case: Case) -> frozenset[str]:
    """Device features of a shader whose native halves also lie in shared memory or in variables: 16-bit types
    there need 16-bit arithmetic, in buffers alone they would not."""
    needed: set[str] = set()
    if is_native(case):
        needed |= {"storage16", "float16"}
    elif is_half(case):
        needed.add("pack_half")
    if computes_in_half(case):
        needed.add("float16")
    return frozenset(needed)
