"""Words for what lies in a buffer. Not in ``kernel``, whose arrays need numpy: idle workers do without it."""

from collections.abc import Mapping
from typing import Literal

DType = Literal["f32", "f16", "u32"]
Role = Literal["in", "out", "inout", "scratch"]

ELEMENT_BYTES: Mapping[str, int] = {"f32": 4, "f16": 2, "u32": 4}
REFERENCE_BYTES = 8
"""Of an element of a reference: float64."""
