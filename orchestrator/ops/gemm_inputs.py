"""Named inputs of the op ``gemm``; docs/gemm.md says what each of them shows."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.ops.gemm_shape import GemmShape

Matrices = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
"""op(A) [batch, m, k], op(B) [b_batch, k, n], C [batch, m, n]: none of them transposed yet."""

HALF_LARGEST = 65504.0
MEDIUMP_LARGEST = 2.0**14


@dataclass(frozen=True, slots=True)
class Range:
    """What numbers a variant may meet, as far as distributions depend on it."""

    half_storage: bool
    mediump: bool
    half_sums: bool


def _normal(shape: GemmShape, rng: np.random.Generator) -> Matrices:
    return (
        rng.standard_normal((shape.batch, shape.m, shape.k), dtype=np.float32),
        rng.standard_normal((shape.b_batch, shape.k, shape.n), dtype=np.float32),
        rng.standard_normal(shape.c_shape, dtype=np.float32),
    )


def _constant(value: float) -> Callable[[GemmShape, np.random.Generator], Matrices]:
    def make(shape: GemmShape, rng: np.random.Generator) -> Matrices:
        a, b, c = _normal(shape, rng)
        return np.full_like(a, value), np.full_like(b, value), c

    return make


def _there_and_back(shape: GemmShape, rng: np.random.Generator) -> Matrices:
    """Products of 256, then of -256: half way a sum stands at 128·k, at the end at 0 or 256; C is normal."""
    a, b, c = _constant(16.0)(shape, rng)
    b[:, (shape.k + 1) // 2 :] = -16.0
    return a, b, c


def _cancelling(shape: GemmShape, rng: np.random.Generator) -> Matrices:
    """Terms of about ±64 beside each other, with sums of the size of their noise."""
    a, b, c = _normal(shape, rng)
    signs = np.where(np.arange(shape.k) % 2, np.float32(-1), np.float32(1))
    return (a / 8 + 64).astype(np.float32), ((b / 64 + 1) * signs[:, None]).astype(np.float32), c


def _identity(shape: GemmShape, rng: np.random.Generator) -> Matrices:
    """op(B) is 1 on its diagonal: column j of the product is column j of op(A), to the bit."""
    a, b, c = _normal(shape, rng)
    b[:] = np.eye(shape.k, shape.n, dtype=np.float32)
    return a, b, c


def _one_of_a(value: float) -> Callable[[GemmShape, np.random.Generator], Matrices]:
    def make(shape: GemmShape, rng: np.random.Generator) -> Matrices:
        a, b, c = _normal(shape, rng)
        a[shape.batch // 2, shape.m // 2, shape.k // 2] = value
        return a, b, c

    return make


def _one_of_b(value: float) -> Callable[[GemmShape, np.random.Generator], Matrices]:
    def make(shape: GemmShape, rng: np.random.Generator) -> Matrices:
        a, b, c = _normal(shape, rng)
        b[shape.b_batch // 2, shape.k // 2, shape.n // 2] = value
        return a, b, c

    return make


def _nan_in_c(shape: GemmShape, rng: np.random.Generator) -> Matrices:
    """Every fifth element of C is NaN, every seventh infinite."""
    a, b, c = _normal(shape, rng)
    flat = c.reshape(-1)
    flat[::7] = np.inf
    flat[::5] = np.nan
    return a, b, c


def _beyond_half(shape: GemmShape, rng: np.random.Generator) -> Matrices:
    a, b, c = _normal(shape, rng)
    return a + np.float32(131072), b, c


DISTRIBUTIONS: dict[str, Callable[[GemmShape, np.random.Generator], Matrices]] = {
    "normal": _normal,
    "ones": _constant(1.0),
    "constant_16": _constant(16.0),
    "there_and_back": _there_and_back,
    "cancelling": _cancelling,
    "identity": _identity,
    "nan_row": _one_of_a(float("nan")),
    "inf_row": _one_of_a(float("inf")),
    "nan_column": _one_of_b(float("nan")),
    "inf_column": _one_of_b(float("inf")),
    "nan_in_c": _nan_in_c,
    "beyond_half": _beyond_half,
}

_LARGEST_RESULT = {"constant_16": 256.0, "ones": 1.0}
"""A term of inputs whose terms are all alike."""


def build(inputs: str, shape: GemmShape, seed: int) -> Matrices:
    """A named input before rounding to the storage type, transposed as it lies in memory."""
    a, b, c = DISTRIBUTIONS[inputs](shape, np.random.default_rng(seed))
    left = a.transpose(0, 2, 1) if shape.trans_a else a
    right = b.transpose(0, 2, 1) if shape.trans_b else b
    return np.ascontiguousarray(left), np.ascontiguousarray(right), c


def refusal(inputs: str, shape: GemmShape, limits: Range) -> str | None:
    """Why a distribution does not fit a shape or a precision, or None."""
    if inputs == "beyond_half" and (limits.half_storage or limits.mediump):
        largest = HALF_LARGEST if limits.half_storage else MEDIUMP_LARGEST
        return f"inputs beyond_half holds 131072; the variant ends at {largest:g}"
    if inputs == "cancelling" and limits.half_sums:
        return "inputs cancelling adds terms of 64 to sums of their noise; fp16 sums keep none of it"
    if inputs == "there_and_back" and shape.beta == 0 and shape.k % 2 == 0:
        return "inputs there_and_back of an even k sum to 0; give beta, or an odd k"
    result = _LARGEST_RESULT.get(inputs, 0.0) * shape.k * abs(shape.alpha) / 100
    if limits.half_storage and result > HALF_LARGEST / 2:
        return f"inputs {inputs} give {result:g} at k {shape.k}; fp16 ends at {HALF_LARGEST:g}"
    return None
