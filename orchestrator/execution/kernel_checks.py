"""A kernel.py whose parts contradict each other is refused here: on a device the same mistake would look
like broken infrastructure, or worse, like a wrong kernel.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np

from orchestrator.domain.case import Case
from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.kernel import Array, Buffer, Reference, Tolerance
from orchestrator.planning.render import RenderedPass

_NUMPY = {"f32": np.dtype("<f4"), "f16": np.dtype("<f2"), "u32": np.dtype("<u4")}


def stored(array: Array, dtype: str) -> Array:
    """The array as it lies in a buffer: C order, little-endian, of the storage type."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=_NUMPY[dtype])


def check_inputs(case: Case, buffers: Sequence[Buffer], inputs: Mapping[str, Array]) -> None:
    """Inputs fit the buffers and hold nothing that the storage type cannot.

    Raises:
        KernelFolderError: what contradicts what.
    """
    by_name = {b.name: b for b in buffers}
    if len(by_name) != len(buffers):
        _refuse(case, f"buffers names one twice: {[b.name for b in buffers]}")
    read = {b.name for b in buffers if b.role in ("in", "inout")}
    if set(inputs) != read:
        _refuse(case, f"inputs gives {sorted(inputs)}; the in and inout buffers are {sorted(read)}")
    for name, array in inputs.items():
        dtype = by_name[name].dtype
        _check_size(case, by_name[name], array)
        there_and_back = stored(array, dtype).astype(array.dtype)
        if not np.array_equal(there_and_back, array, equal_nan=array.dtype.kind == "f"):
            _refuse(case, f"inputs: {name} is not rounded to {dtype}; the reference would see other values")


def check_references(case: Case, buffers: Sequence[Buffer], references: Mapping[str, Reference]) -> None:
    """References fit the buffers.

    Raises:
        KernelFolderError: what contradicts what.
    """
    written = {b.name: b for b in buffers if b.role in ("out", "inout")}
    if not references or set(references) - set(written):
        _refuse(case, f"reference gives {sorted(references)}; out and inout buffers are {sorted(written)}")
    for name, reference in references.items():
        _check_size(case, written[name], reference)
        if reference.dtype != np.float64:
            _refuse(case, f"reference: {name} is {reference.dtype}, not float64")


def check_case(
    case: Case,
    buffers: Sequence[Buffer],
    passes: Sequence[RenderedPass],
    references: Mapping[str, str],
    tolerance: Mapping[str, Tolerance],
    kept: Sequence[str] = (),
) -> None:
    """Passes, tolerances and kept buffers fit the buffers and references.

    Raises:
        KernelFolderError: what contradicts what.
    """
    if set(references) != set(tolerance):
        _refuse(case, f"reference gives {sorted(references)} and tolerance {sorted(tolerance)}")
    for name, bounds in tolerance.items():
        if not all(math.isfinite(b) and b >= 0 for b in (bounds.atol, bounds.rtol, bounds.nmse)):
            _refuse(case, f"tolerance: {name}: {bounds} is not three finite numbers of 0 or more")
    if not passes:
        _refuse(case, "passes is empty")
    unchecked = {b.name for b in buffers if b.role in ("out", "inout")} - set(references)
    if wrong := [name for name in kept if name not in unchecked]:
        _refuse(
            case, f"kept gives {wrong}; out and inout buffers without a reference are {sorted(unchecked)}"
        )
    known = {b.name for b in buffers}
    for step in passes:
        if unknown := [b for b in step.buffers if b not in known]:
            _refuse(case, f"passes: {step.template} binds {unknown}; buffers has {sorted(known)}")
    if unbound := sorted(known.difference(*(step.buffers for step in passes))):
        _refuse(case, f"no pass binds {unbound}; leave them out of buffers")


def _check_size(case: Case, buffer: Buffer, array: Array) -> None:
    if array.size != buffer.count:
        _refuse(case, f"{buffer.name} has {array.size} elements, its buffer {buffer.count}")


def _refuse(case: Case, what: str) -> NoReturn:
    raise KernelFolderError(f"kernels/{case.kernel}/kernel.py: {what} (case {case.label})")
