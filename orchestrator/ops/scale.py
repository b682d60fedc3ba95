"""Error budget, factors and named inputs of the op ``scale``: o = a · o, in place.

One product an element, and what storing it costs; u = 2⁻²⁴ (fp32), an fp16 ULP is at most 2⁻¹⁰ relative.

- The factor a = percent/100 is rounded to the type that multiplies: |a' − a|/a, exact for 1, 1.5, 0.25.
- fp32: one product, correctly rounded: either neighbour (Vulkan specification, "Precision and Operation of
  SPIR-V Instructions"; ESSL 3.10 section 4.7.1), so a whole ULP, 2u.
- fp16_storage: that product, and its conversion to 16 bits. packHalf2x16 and OpFConvert may round up or down,
  so a whole ULP, 2⁻¹⁰, and 2⁻²⁴ absolute where the result is subnormal.
- fp16: the product itself is rounded to 16 bits, a whole ULP, 2⁻¹⁰; what is below 2⁻¹⁴, before or after, may
  be flushed to zero, 2⁻¹⁴ absolute (shaderDenormPreserveFloat16 is not asked for).

With a = 1 a product is what it was: nothing is rounded, and nothing is owed. A result from 65,520 on, where
rounding to nearest leaves fp16, must be that infinity: a device that rounds towards zero makes 65,504 of all
larger numbers, SwiftShader's packHalf2x16 makes NaN of them (and of infinity), and both are worth a mismatch.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.kernel import Tolerance
from orchestrator.ops.tolerances import HALF_SMALLEST, HALF_SUBNORMAL, HALF_ULP, U32

BUDGET_VERSION = 1
"""Part of the code hash: raise it whenever a formula here changes."""

HALF_OVERFLOW = 65_520.0
"""Rounds to infinity, as everything above it does; anything below rounds to at most 65504."""

F64 = NDArray[np.float64]
Values = NDArray[np.float32]

EDGES = (2049.0, 2051.0, 65519.0, 65520.0, -2049.0, -2051.0, -65519.0, -65520.0)
"""In fp16: 2048, 2052 (ties to even), 65504, infinity."""


def factor_of(percent: int, *, half: bool) -> float:
    """The factor as the shader holds it: an fp32 or fp16 number."""
    return float(np.float16(percent / 100)) if half else float(np.float32(percent / 100))


def scale_reference(values: NDArray[np.floating], percent: int, *, half_storage: bool) -> F64:
    """percent/100 · values, in float64; NaN where the result must not be a number, an infinity where that."""
    with np.errstate(over="ignore", invalid="ignore"):
        exact: F64 = values.astype(np.float64) * (percent / 100)
    if not half_storage:
        return exact
    return np.where(np.abs(exact) >= HALF_OVERFLOW, np.copysign(np.inf, exact), exact)


def scale_tolerance(reference: F64, percent: int, *, half_storage: bool, half_product: bool) -> Tolerance:
    """Bounds from the module's docstring; ``reference`` says whether any result is subnormal in fp16."""
    if percent == 100 and not half_product:
        return Tolerance(atol=0.0, rtol=0.0, nmse=0.0)
    size = np.abs(reference[np.isfinite(reference)])
    factor = percent / 100
    rtol = abs(factor_of(percent, half=half_product) - factor) / factor
    atol = 0.0
    tiny = bool(np.any((size > 0) & (size < HALF_SMALLEST * max(1.0, factor))))
    if half_product:
        rtol += HALF_ULP if percent != 100 else 0.0
        atol = HALF_SMALLEST * max(1.0, factor) if tiny else 0.0
    else:
        rtol += 2 * U32 + (HALF_ULP if half_storage else 0.0)
        atol = HALF_SUBNORMAL if half_storage and tiny else 0.0
    signal = float(np.square(size).mean()) if size.size else 0.0
    budget = float(np.square(atol + rtol * size).mean()) if size.size else 0.0
    return Tolerance(atol=atol, rtol=rtol, nmse=budget / signal if signal else 0.0)


def _normal(count: int, rng: np.random.Generator) -> Values:
    return rng.standard_normal(count, dtype=np.float32)


def _ramp(count: int, rng: np.random.Generator) -> Values:
    """1 … 1024 over and over: no element has its neighbour's value."""
    del rng
    return (np.arange(count) % 1024 + 1).astype(np.float32)


def _edges(count: int, rng: np.random.Generator) -> Values:
    """Where rounding to fp16 ties, and where it leaves the range."""
    del rng
    return np.resize(np.array(EDGES, np.float32), count)


def _tiny(count: int, rng: np.random.Generator) -> Values:
    """Around the smallest numbers of fp16, subnormal ones among them; the first is 1, for there is no signal
    in what may be flushed."""
    values = np.exp2(rng.uniform(-22, -12, count)).astype(np.float32)
    values[0] = 1.0
    return values


def _not_finite(count: int, rng: np.random.Generator) -> Values:
    """``ramp`` with NaN, infinities and the largest number of fp16 in the last elements."""
    values = _ramp(count, rng)
    odd = np.array([np.nan, np.inf, -np.inf, 65504.0], np.float32)[: max(0, count - 1)]
    values[count - len(odd) :] = odd
    return values


DISTRIBUTIONS: dict[str, Callable[[int, np.random.Generator], Values]] = {
    "normal": _normal,
    "ramp": _ramp,
    "half_edges": _edges,
    "half_tiny": _tiny,
    "not_finite": _not_finite,
}


def build(inputs: str, count: int, seed: int) -> Values:
    """A named input, before rounding to the storage type."""
    return DISTRIBUTIONS[inputs](count, np.random.default_rng(seed))
