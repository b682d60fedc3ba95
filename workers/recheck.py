"""The host's second opinion: the pulled tensor against the reference, in float64.

Done for every failure and for a random sample of passes. A host that disagrees with the runner means that
the transfer or the runner cannot be trusted; the trial then says nothing about the kernel.
"""

import numpy as np

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.job import CheckJob
from orchestrator.domain.kernel import NOT_FINITE_BITS
from orchestrator.domain.trial import Numerics

_DTYPES = {"f32": "<f4", "f16": "<f2", "u32": "<u4"}


def recheck(tensor: bytes, reference: bytes, numerics: Numerics, check: CheckJob) -> str:
    """What the host sees otherwise than the runner did; empty when they agree.

    Args:
        tensor: raw buffer as pulled (may carry padding up to 4 bytes).
        reference: little-endian float64, as many elements as the check has.
    """
    dtype = np.dtype(_DTYPES[numerics.dtype])
    nbytes = numerics.count * dtype.itemsize
    if len(tensor) < nbytes:
        return f"{numerics.buffer}: pulled {len(tensor)} bytes of {nbytes}"
    if (digest := sha256_hex(tensor[:nbytes])) != numerics.hash:
        return f"{numerics.buffer}: pulled tensor has hash {digest[:12]}, the runner saw {numerics.hash[:12]}"
    got = np.frombuffer(tensor[:nbytes], dtype=dtype).astype(np.float64)
    ref = np.frombuffer(reference, dtype="<f8")
    if len(ref) != numerics.count:
        return f"{numerics.buffer}: the reference has {len(ref)} elements, the output {numerics.count}"
    failing = int(np.count_nonzero(~within(got, ref, check.atol, check.rtol)))
    if failing != numerics.failing:
        return f"{numerics.buffer}: host counts {failing} failing elements, the runner {numerics.failing}"
    return ""


def within(
    got: np.ndarray[tuple[int], np.dtype[np.float64]],
    ref: np.ndarray[tuple[int], np.dtype[np.float64]],
    atol: float,
    rtol: float,
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Element-wise pass, by the runner's rule (workers/runner/src/compare.c).

    Within tolerance where the reference is finite; the same infinity where it is one; not finite where it
    holds ``NOT_FINITE_BITS``. Any other NaN in the reference fails.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.abs(got - ref) <= atol + rtol * np.abs(ref)
    demands_nonfinite = ref.view("<u8") == NOT_FINITE_BITS
    as_demanded = np.where(np.isfinite(ref), close, got == ref)
    return np.where(demands_nonfinite, ~np.isfinite(got), as_demanded)
