"""The host's second opinion: the pulled tensor against the reference, in float64.

Done for every failure and for a random sample of passes. A host that disagrees with the runner means that
the transfer or the runner cannot be trusted; the trial then says nothing about the kernel.
"""

import numpy as np

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.job import CheckJob
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
    """Element-wise pass: within tolerance where the reference is finite, non-finite where it is not."""
    with np.errstate(invalid="ignore"):
        close = np.abs(got - ref) <= atol + rtol * np.abs(ref)
    both_finite = np.isfinite(got) & np.isfinite(ref)
    neither = ~np.isfinite(got) & ~np.isfinite(ref)
    return (both_finite & close) | neither
