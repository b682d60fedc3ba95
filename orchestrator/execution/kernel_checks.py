"""A kernel.py whose data contradict each other is refused here: on a device the same mistake would look
like broken infrastructure, or worse, like a wrong kernel. What it declares was checked when it was planned
(orchestrator/planning/kernel_contract.py).
"""

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import cast

import numpy as np

from orchestrator.domain.case import Case
from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.kernel import Array, Buffer, Reference, Tolerance
from orchestrator.execution.shader_checks import shader_fault
from orchestrator.planning.kernel_call import refuse, refuse_if
from orchestrator.planning.kernel_folder import KERNEL_FILE, LoadedKernel, sample_case
from orchestrator.planning.render import RenderedPass, render_case

_NUMPY = {"f32": np.dtype("<f4"), "f16": np.dtype("<f2"), "u32": np.dtype("<u4")}
_NUMBERS = "fiub"
"""Kinds of numpy types that hold real numbers."""


def stored(array: Array, dtype: str) -> Array:
    """The array as it lies in a buffer: C order, little-endian, of the storage type."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=_NUMPY[dtype])


def check_sample(loaded: LoadedKernel) -> None:
    """A small case of a kernel renders, and its text is what the kernel declares.

    Raises:
        KernelFolderError: it does not.
    """
    case = sample_case(loaded.kernel)
    if loaded.kernel.invalid(case) is not None:
        return
    for step in render_case(loaded, case).passes:
        if (fault := shader_fault(step)) is not None:
            where = loaded.folder / KERNEL_FILE
            raise KernelFolderError(f"{where}: {fault} (a small case: {case.label}).")


def check_shaders(case: Case, passes: Sequence[RenderedPass]) -> None:
    """Rendered texts agree with the passes.

    Raises:
        KernelFolderError: what contradicts what.
    """
    for step in passes:
        refuse_if(case, shader_fault(step))


def check_inputs(case: Case, buffers: Sequence[Buffer], inputs: Mapping[str, Array]) -> None:
    """Inputs fit the buffers and hold nothing that the storage type cannot.

    Raises:
        KernelFolderError: what contradicts what.
    """
    by_name = {b.name: b for b in buffers}
    read = {b.name for b in buffers if b.role in ("in", "inout")}
    if set(inputs) != read:
        refuse(case, f"inputs gives {sorted(inputs)}; the in and inout buffers are {sorted(read)}")
    for name, array in inputs.items():
        dtype = by_name[name].dtype
        _check_array(case, "inputs", by_name[name], array)
        there_and_back = stored(array, dtype).astype(array.dtype)
        if not np.array_equal(there_and_back, array, equal_nan=array.dtype.kind == "f"):
            refuse(case, f"inputs: {name} is not rounded to {dtype}; the reference would see other values")


def check_references(case: Case, buffers: Sequence[Buffer], references: Mapping[str, Reference]) -> None:
    """References fit the buffers.

    Raises:
        KernelFolderError: what contradicts what.
    """
    written = {b.name: b for b in buffers if b.role in ("out", "inout")}
    if not references or set(references) - set(written):
        refuse(case, f"reference gives {sorted(references)}; out and inout buffers are {sorted(written)}")
    for name, reference in references.items():
        _check_array(case, "reference", written[name], reference)
        if reference.dtype != np.float64:
            refuse(case, f"reference: {name} is {reference.dtype}; compute and return float64")


def check_case(
    case: Case,
    buffers: Sequence[Buffer],
    passes: Sequence[RenderedPass],
    references: Mapping[str, str],
    tolerance: Mapping[str, Tolerance],
    kept: Sequence[str] = (),
) -> None:
    """Shaders, tolerances and kept buffers fit the buffers and references.

    Raises:
        KernelFolderError: what contradicts what.
    """
    if set(references) != set(tolerance):
        refuse(case, f"reference gives {sorted(references)} and tolerance {sorted(tolerance)}")
    for name, bounds in tolerance.items():
        _check_bounds(case, name, bounds)
    unchecked = {b.name for b in buffers if b.role in ("out", "inout")} - set(references)
    if wrong := [name for name in kept if name not in unchecked]:
        refuse(case, f"kept gives {wrong}; out and inout buffers without a reference are {sorted(unchecked)}")
    check_shaders(case, passes)


def _check_bounds(case: Case, name: str, bounds: object) -> None:
    if not isinstance(bounds, Tolerance):
        refuse(case, f"tolerance: {name} is a {type(bounds).__name__}; give a Tolerance(atol, rtol, nmse)")
    for what in ("atol", "rtol", "nmse"):
        bound: object = getattr(bounds, what)
        if not isinstance(bound, Real) or not 0 <= float(bound) < math.inf:
            refuse(case, f"tolerance: {name}: {what} is {bound!r}; give a finite number of 0 or more")


def _check_array(case: Case, method: str, buffer: Buffer, array: object) -> None:
    if not isinstance(array, np.ndarray):
        refuse(case, f"{method}: {buffer.name} is a {type(array).__name__}; give a numpy array")
    numbers = cast("Array", array)
    if numbers.dtype.kind not in _NUMBERS:
        refuse(case, f"{method}: {buffer.name} holds {numbers.dtype}; give real numbers")
    if numbers.size != buffer.count:
        refuse(
            case,
            f"{method}: {buffer.name} has {numbers.size} elements, its buffer {buffer.count}; give as many",
        )
