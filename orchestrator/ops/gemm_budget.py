"""Error budget of gemm: how far a correct kernel may be from the float64 reference.

Per element c = α·s + β·c₀ with s = Σ_p a_p b_p over k terms, x = a∘b the vector of its terms. Unit roundoffs:
u = 2⁻²⁴ (fp32), u_h = 2⁻¹¹ (fp16), u_m = 2⁻¹⁰ (mediump). Rounding errors are taken as random,
mean-independent variables, so that n of them grow like λ√n and not like n (N. J. Higham and T. Mary, "A New
Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41(5), 2019); why λ = CONFIDENCE = 4
stands at about 7 standard deviations is said in attention_budget. Terms that are alike are rounded alike, for
long stretches: g of them count as one variable, so λ becomes λ√g, and never more than the worst case. Terms
count as alike where their whole columns of A and rows of B are equal.

1. Sum in fp32. Kernels of this op add in the order of k, so the partial sums S_p are those of the data, and
   each addition errs by u·|S_p|: |Δs| ≤ u·min(√k, λ√g)·√(Σ_p S_p²). S_p is known at the ends of SEGMENTS
   stretches of k. Between two of them, L terms apart, it is taken as their chord plus noise: Σ S_p² ≤ L·(max
   of both² + ‖x_L‖²), where a random walk tied to both ends has a quarter of ‖x_L‖² at most. So sums that
   grow owe more than sums that cancel, and a sum of 4096 random terms about a tenth of what Σ|x| would grant.
2. Products in fp32, where they are not fused: u·min(√k, λ√g)·‖x‖₂.
3. α and β as fp32 numbers, |α' − α|/α, exact for 100, 150, 50; a product each, a whole ULP, 2u (Vulkan
   specification, "Precision and Operation of SPIR-V Instructions": either neighbour; ESSL 3.10 section
   4.7.1); and their sum, 2u·|c|. Multiplied by nothing (100) nothing is owed.
4. fp16 output: packHalf2x16 and OpFConvert may round up or down: a whole ULP, 2⁻¹⁰ relative, 2⁻²⁴ absolute.
   fp16 inputs are exact: the reference starts from them.
5. mediump: a, b and their product are rounded, each to u_m: √3·u_m·min(Σ|x|, λ√g·‖x‖₂); what lies below 2⁻¹⁴
   is flushed to zero: λ√g·2⁻¹⁴·(‖a‖₂ + ‖b‖₂ + √k). Sums are never mediump.
6. fp16 arithmetic: a product is rounded: u_h·min(Σ|x|, λ√g·‖x‖₂), or flushed below 2⁻¹⁴: min(Σ|x|,
   λ·√(gk)·2⁻¹⁴). The sum of one chunk of t terms is fp16: its p-th partial sum is at most √p·‖x_chunk‖
   (Cauchy and Schwarz; equal terms get there, random ones to a √t-th of it), so Σ T_p² ≤ ½t(t+1)·‖x‖², and Δs
   gains u_h·min(√k, λ√g)·√(½t(t+1))·‖x‖₂, in the worst case u_h·t·Σ|x|, whichever is less. Chunks are
   added in fp32, as in 1.

No constant here is fitted. rtol is what every element owes of itself (3 and 4), atol what the neediest needs
beyond it (|α| times 1, 2, 5 and 6, and β's part of 3), NMSE is bounded by the mean square of the budget over
the mean square of the reference. What is not finite counts as 0 here; the reference demands it of the output,
whatever the budget.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.kernel import Array, Tolerance
from orchestrator.ops.gemm_shape import GemmShape
from orchestrator.ops.tolerances import (
    CONFIDENCE,
    HALF_SMALLEST,
    HALF_SUBNORMAL,
    HALF_ULP,
    U32,
    U_HALF,
    U_MEDIUMP,
    ToleranceCache,
    rounded_up,
)

BUDGET_VERSION = 1
"""Part of the code hash: raise it whenever a formula here changes."""

SEGMENTS = 16
SHORTEST_SEGMENT = 8

F32 = NDArray[np.float32]

_BLOCK_ELEMENTS = 1 << 19
"""Of C at a time: few enough for a processor's cache."""

_remembered = ToleranceCache()


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What a variant computes with, as far as the budget depends on it."""

    half_output: bool
    mediump: bool
    half_terms: int = 0
    """Products that one fp16 sum holds; 0: neither products nor sums are fp16."""


def gemm_tolerance(
    a: Array, b: Array, c: Array | None, shape: GemmShape, arithmetic: Arithmetic
) -> Tolerance:
    """Bounds for matrices as stored; ``c`` as in gemm_reference.

    Computed in fp32, an estimate of an estimate; remembered.
    """
    tensors = (a, b) if c is None else (a, b, c)
    return _remembered.get(tensors, (shape, arithmetic), lambda: _tolerance(a, b, c, shape, arithmetic))


def _tolerance(a: Array, b: Array, c: Array | None, shape: GemmShape, arithmetic: Arithmetic) -> Tolerance:
    rtol, atol, squares, signal = _relative(shape, arithmetic), 0.0, 0.0, 0.0
    for i in range(shape.batch):
        left, right = _finite(shape.a_of(a, i)), _finite(shape.b_of(b, i))
        product = _Product(left, right, shape, arithmetic)
        for rows in _blocks(shape):
            budget, value = product.errors(rows)
            if c is not None:
                old = c[i, rows].astype(np.float32) * np.float32(shape.beta / 100)
                value = value + old
                budget = budget + np.float32(_of_factor(shape.beta) + 2 * U32) * np.abs(old)
            usable = np.isfinite(value)
            size, budget = np.abs(value[usable]), budget[usable]
            atol = max(atol, float(np.max(budget, initial=0.0)))
            squares += float(np.square(budget + np.float32(rtol) * size, dtype=np.float64).sum())
            signal += float(np.square(size, dtype=np.float64).sum())
    nmse = squares / signal if signal else 0.0
    return Tolerance(atol=rounded_up(atol), rtol=rounded_up(rtol), nmse=rounded_up(nmse))


def _relative(shape: GemmShape, arithmetic: Arithmetic) -> float:
    """Steps 3 and 4, as far as they are relative to c."""
    rtol = _of_factor(shape.alpha) + (2 * U32 if shape.beta else 0.0)
    return rtol + (HALF_ULP if arithmetic.half_output else 0.0)


def _of_factor(percent: int) -> float:
    """A factor and a product with it, relative."""
    if percent in (0, 100):
        return 0.0
    factor = percent / 100
    return abs(float(np.float32(factor)) - factor) / abs(factor) + 2 * U32


def _blocks(shape: GemmShape) -> Iterator[slice]:
    rows = max(1, _BLOCK_ELEMENTS // shape.n)
    for start in range(0, shape.m, rows):
        yield slice(start, min(shape.m, start + rows))


def _finite(matrix: Array) -> F32:
    return np.nan_to_num(matrix.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)


def largest_group(left: F32, right: F32) -> int:
    """Terms that are alike in every element: equal columns of A and rows of B, by a hash of their bits."""
    m, n, k = len(left), int(right.shape[1]), len(right)
    weights: NDArray[np.uint64] = np.sqrt(np.arange(1, m + n + 1) + 0.5).view(np.uint64)
    keys: NDArray[np.uint64] = np.zeros(k, dtype=np.uint64)
    for i in range(m):  # modulo 2^64: exact, whatever the order
        keys += np.ascontiguousarray(left[i]).view(np.uint32) * weights[i]
    for p in range(k):
        row = np.ascontiguousarray(right[p]).view(np.uint32) * weights[m:]
        keys[p : p + 1] += np.sum(row, dtype=np.uint64)
    return int(np.unique(keys, return_counts=True)[1].max())


class _Product:
    """Budget of one product of the batch: op(A) [m, k] and op(B) [k, n], what is not finite taken out."""

    def __init__(self, left: F32, right: F32, shape: GemmShape, arithmetic: Arithmetic) -> None:
        self._left, self._right, self._shape, self._arithmetic = left, right, shape, arithmetic
        self._alike = CONFIDENCE * math.sqrt(largest_group(left, right))
        self._growth = np.float32(min(math.sqrt(shape.k), self._alike))

    def errors(self, rows: slice) -> tuple[F32, F32]:
        """(|α|·(steps 1, 2, 5 and 6) and what is subnormal, α·s) of some rows of C."""
        left, right, arithmetic = self._left[rows], self._right, self._arithmetic
        sums, walk, squared = self._walk(left)
        norm = np.sqrt(squared)
        errors = np.float32(U32) * self._growth * (np.sqrt(walk) + norm)
        if arithmetic.mediump or arithmetic.half_terms:
            errors += self._low_errors(left, norm, np.abs(left) @ np.abs(right))
        alpha = np.float32(self._shape.alpha / 100)
        errors *= np.abs(alpha)
        if arithmetic.half_output:
            errors += np.float32(HALF_SUBNORMAL)
        return errors, alpha * sums

    def _walk(self, left: F32) -> tuple[F32, F32, F32]:
        """(s, Σ S_p², ‖x‖²) of every element."""
        k = self._shape.k
        length = max(SHORTEST_SEGMENT, -(-k // SEGMENTS))
        sums = np.zeros((left.shape[0], self._shape.n), np.float32)
        walk, squared = np.zeros_like(sums), np.zeros_like(sums)
        for start in range(0, k, length):
            part, other = left[:, start : start + length], self._right[start : start + length]
            before = np.square(sums)
            sums += part @ other
            noise = np.square(part) @ np.square(other)
            walk += np.float32(part.shape[1]) * (np.maximum(before, np.square(sums)) + noise)
            squared += noise
        return sums, walk, squared

    def _low_errors(self, left: F32, norm: F32, absolute: F32) -> F32:
        """Steps 5 and 6; ``absolute`` is Σ|x|."""
        k, alike = self._shape.k, np.float32(self._alike)
        spread = np.minimum(absolute, alike * norm)
        if self._arithmetic.mediump:
            lengths = (
                np.linalg.norm(left, axis=1)[:, None]
                + np.linalg.norm(self._right, axis=0)[None, :]
                + math.sqrt(k)
            )
            rounded = np.float32(U_MEDIUMP * math.sqrt(3)) * spread
            return (rounded + alike * np.float32(HALF_SMALLEST) * lengths).astype(np.float32)
        terms = min(self._arithmetic.half_terms, k)
        flushed = np.minimum(absolute, alike * np.float32(math.sqrt(k) * HALF_SMALLEST))
        chunks = np.minimum(
            np.float32(terms) * absolute,
            self._growth * np.float32(math.sqrt(terms * (terms + 1) / 2)) * norm,
        )
        return (np.float32(U_HALF) * (spread + chunks) + flushed).astype(np.float32)
