"""What a kernel folder's ``kernel.py`` promises; see docs/add-a-kernel.md.

A folder ``NAME/`` holds ``kernel.py`` with a module attribute ``kernel``: an instance of a subclass of
:class:`Kernel`. It is the only file that knows the kernel. All arrays are numpy, C-contiguous, flat or
shaped; their bytes in C order are what the device sees.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.buffer import ELEMENT_BYTES, DType, Role
from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.number import Number

Array = NDArray[Any]
Reference = NDArray[np.float64]

NOT_FINITE_BITS = 0x7FF8_7461_7266_6D21
"""A float64 of a reference blob that demands "not finite": NaN or an infinity (docs/wire-formats.md)."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of the variant or parameter of the workload."""

    name: str
    values: tuple[AxisValue, ...] | None
    """Allowed values; None: any positive integer."""
    default: AxisValue | None = None
    """None: the matrix must give it."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A storage buffer; ``count`` elements, rounded up to 4 bytes on the device."""

    name: str
    role: Role
    dtype: DType
    count: int

    @property
    def nbytes(self) -> int:
        return (self.count * ELEMENT_BYTES[self.dtype] + 3) // 4 * 4


@dataclass(frozen=True, slots=True)
class Subgroups:
    """What a shader's tile geometry takes for granted about subgroups (field case G1-07)."""

    size: int
    """Invocations in a subgroup: the device must run the pass with exactly so many."""
    count: int
    """Subgroups in a workgroup, as the tiling needs them."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One dispatch. Buffers are bound in order from binding 0."""

    template: str
    """File in the kernel's folder, e.g. ``flash.comp.j2``."""
    workgroup: tuple[int, int, int]
    grid: tuple[int, int, int]
    """In workgroups."""
    shared_bytes: int
    buffers: tuple[str, ...]
    context: Mapping[str, object] = field(default_factory=dict[str, object])
    """What the template sees, beside ``workgroup``, ``case`` axes and workload parameters."""
    constants: Mapping[str, int] = field(default_factory=dict[str, int])
    """Shape constants by name, 32-bit. ``{{ constants }}`` in the template declares them: literals on GLES,
    specialisation constants 0, 1, … on Vulkan, where one module then serves every shape."""
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    """Numbers of this dispatch alone by name, 32-bit and unsigned; at most 32. ``{{ values }}`` in the
    template declares them as ``uint``: uniforms on GLES, push constants on Vulkan. Dispatches that differ in
    nothing else share one program."""
    subgroups: Subgroups | None = None
    """None: right with any subgroup size."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """An output passes when every element is within ``atol + rtol·|ref|`` and NMSE within ``nmse``."""

    atol: Number
    rtol: Number
    nmse: Number


@dataclass(frozen=True, slots=True)
class Cost:
    """Arithmetic and DRAM traffic of one execution."""

    flops: int
    bytes_min: int
    """Compulsory traffic: inputs once, outputs once."""
    bytes_moved: int
    """Modelled traffic of this variant, scratch and repeated reads included."""


class Kernel(ABC):
    """One family of shader variants of one op."""

    role: Literal["op", "probe", "canary"] = "op"
    """``probe`` measures the device, once a run; ``canary`` vouches for it before and after each batch."""
    name: str
    op: str
    params: tuple[Axis, ...]
    """Workload parameters, in the order people read them."""
    axes: tuple[Axis, ...]
    """Variant axes, ``api`` and ``precision`` among them."""
    distributions: tuple[str, ...]
    """Named input distributions."""
    tolerance_version: str = "1"
    """Version of the error bound's formula; part of the code hash."""

    def invalid(self, case: Case) -> str | None:
        """Why no device could run this case (``kv_heads 3 does not divide heads 8``), or None."""
        del case
        return None

    def features(self, case: Case) -> frozenset[str]:
        """Device features that the rendered shader needs (names of the profile's features)."""
        del case
        return frozenset()

    def matrices(self, case: Case) -> frozenset[str]:
        """Cooperative matrix shapes that the shader multiplies, spelled as in ``Profile.matrices``; such a
        kernel names the feature ``cooperative_matrix``, too."""
        del case
        return frozenset()

    def kept(self, case: Case) -> tuple[str, ...]:
        """``out`` buffers without a reference whose bytes the host wants: what a probe found out."""
        del case
        return ()

    @abstractmethod
    def buffers(self, case: Case) -> tuple[Buffer, ...]: ...

    @abstractmethod
    def passes(self, case: Case) -> tuple[Pass, ...]: ...

    @abstractmethod
    def data_key(self, case: Case) -> str:
        """Everything that inputs, reference and tolerance inputs depend on, as one string.

        Cases with equal keys share input and reference blobs (same op, workload, distribution,
        seed and storage type)."""

    @abstractmethod
    def inputs(self, case: Case) -> Mapping[str, Array]:
        """Contents of every ``in`` and ``inout`` buffer, already rounded to the storage type."""

    @abstractmethod
    def reference(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Reference]:
        """Float64 results of every checked output, from the rounded inputs.

        NaN demands that the output is not finite there; an infinity demands the same infinity."""

    @abstractmethod
    def tolerance(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Tolerance]:
        """Error bound of every checked output, derived from an error budget (see its docstring)."""

    @abstractmethod
    def cost(self, case: Case) -> Cost: ...
