"""Error budget of blur_tonemap: how far a correct kernel may be from the float64 reference.

Per channel of a texel: m = (Σ x)/n over the n = (2·radius + 1)² texels of the box, A = (Σ |x|)/n, and for
colours y = r^g with r = m/(1 + m) and g = 1/2.2. Units are relative unless they say otherwise; an ULP is at
most 2u relative. u = 2⁻²⁴ (fp32), u_h = 2⁻¹¹ (fp16).

1. Mean, always fp32: kernels sum a row of the box, then the sums of the rows, so that every texel passes
   through at most 4·radius additions, the worst case for any order within rows and between them; 1/n as an
   fp32 number, and the product with it: |Δm| ≤ (4·radius + 2)·u·A. Adding one after another would owe n - 1.
2. The mean in 16 bits, where it is stored between two passes (fp16_storage) or computed with (fp16):
   conversions round up or down (packHalf2x16: ESSL 3.10 section 8.4 fixes no mode; OpFConvert: Vulkan
   specification, "correctly rounded" is either neighbour), so a whole ULP: Δm gains 2u_h·m, at least 2⁻²⁴.
   In 16-bit arithmetic what lies below 2⁻¹⁴ may be flushed to zero: Δm gains min(m, 2⁻¹⁴) there.
3. Δm goes through the tone curve exactly: y(m) − y(m − Δm), with y(0) = 0. The curve is concave, so that is
   the larger side; near zero, where its slope is infinite, no first order would do.
4. r: 1 + m is one rounding; division 2.5 ULP (Vulkan; ESSL 3.10 section 4.7.1): Δr = 6u, for y it counts g
   times. fp16 divides by at most 2¹³ + 1, because 2.5 ULP is promised up to 2¹⁴ only and a reciprocal below
   2⁻¹⁴ could be flushed, which would turn highlights black: Δr gains 1/(1 + 2¹³) from m = 2¹³ on.
5. pow(r, g) is exp2(g·log2 r), and inherits its error (both specifications). L = log2 r, t = g·L:
   log2 errs by 3 ULP of L, for r in [0.5, 2] by 2⁻²¹ absolute; g and the product are rounded, 2u·|t|;
   exp2 errs by 3 + 2|t| ULP. In fp16: 3 ULP of L or 2⁻⁷ absolute, and 1 + 2|t| ULP (Vulkan).
   Relative error of y: ln 2·(g·ΔL + 2u·|t|) + ULPs of exp2.
6. Output in 16 bits: a whole ULP, 2u_h·|y|, at least 2⁻²⁴. Alpha owes 1 and this; its way through a stored
   mean rounds it once, because what is fp16 already is not rounded again.

No constant here is fitted. rtol is what alpha owes, whose values may be large, atol what the neediest element
needs beyond it, NMSE is bounded by the mean square of the budget over the mean square of the reference.
Values that are clamped to 0 owe nothing.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from orchestrator.domain.kernel import Array, Tolerance
from orchestrator.ops.blur_tonemap_shape import F64, GAMMA, ImageShape, box_mean, tone_curve
from orchestrator.ops.tolerances import HALF_SMALLEST, HALF_SUBNORMAL, U32, U_HALF, ToleranceCache, rounded_up

BUDGET_VERSION = 1
"""Part of the code hash: raise it whenever a formula here changes."""

LARGEST_DIVIDEND = 8192.0
"""Means above it count as it where the division is 16 bits wide."""

_LOG2_NEAR_1 = {False: 2.0**-21, True: 2.0**-7}
"""Absolute error of log2 in [0.5, 2]; True: in fp16."""
_EXP2_ULPS = {False: 3.0, True: 1.0}

_BLOCK_ELEMENTS = 1 << 22
_remembered = ToleranceCache()


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What a variant computes with, as far as the budget depends on it."""

    half_output: bool
    half_mean: bool
    """The mean is rounded to 16 bits before the tone curve."""
    half_curve: bool
    """The tone curve is 16-bit arithmetic."""


def block_rows(shape: ImageShape) -> int:
    """Rows of an image that are worked on at a time."""
    return max(1, _BLOCK_ELEMENTS // (4 * shape.width))


def blur_tonemap_tolerance(image: Array, shape: ImageShape, arithmetic: Arithmetic) -> Tolerance:
    """Bounds for one image (stored values); remembered."""
    return _remembered.get((image,), (shape, arithmetic), lambda: _tolerance(image, shape, arithmetic))


def _tolerance(image: Array, shape: ImageShape, arithmetic: Arithmetic) -> Tolerance:
    rtol, atol, squares, signal = _relative(shape, arithmetic), 0.0, 0.0, 0.0
    for budget, value in _blocks(image, shape, arithmetic):
        atol = max(atol, float(np.max(budget - rtol * value, initial=0.0)))
        squares += float(np.square(budget).sum())
        signal += float(np.square(value).sum())
    nmse = squares / signal if signal else 0.0
    return Tolerance(atol=rounded_up(atol), rtol=rounded_up(rtol), nmse=rounded_up(nmse))


def _relative(shape: ImageShape, arithmetic: Arithmetic) -> float:
    """What alpha of one sign owes, which may be large; colours are at most 1 and owe a little more."""
    return (4 * shape.radius + 2) * U32 + (2 * U_HALF if arithmetic.half_output else 0)


def _blocks(image: Array, shape: ImageShape, arithmetic: Arithmetic) -> Iterator[tuple[F64, F64]]:
    """Budget and |reference| of every element whose reference is finite, some rows at a time."""
    rows, positive = block_rows(shape), bool((image >= 0).all())
    for first in range(0, shape.height, rows):
        stop = min(first + rows, shape.height)
        mean = box_mean(image, shape, first, stop)
        size = mean if positive else box_mean(np.abs(image), shape, first, stop)
        error = (4 * shape.radius + 2) * U32 * size
        colour, light = _colours(mean[..., :3], error[..., :3], arithmetic)
        alpha, plain = error[..., 3], np.abs(mean[..., 3])
        if arithmetic.half_output:
            alpha = alpha + np.maximum(2 * U_HALF * plain, np.where(plain > 0, HALF_SUBNORMAL, 0))
        budget = np.concatenate([colour.ravel(), alpha.ravel()])
        value = np.concatenate([light.ravel(), plain.ravel()])
        finite = np.isfinite(value)
        yield budget[finite], value[finite]


def _colours(mean: F64, error: F64, arithmetic: Arithmetic) -> tuple[F64, F64]:
    """(budget, y); steps 2 to 6."""
    half = arithmetic.half_curve
    u = U_HALF if half else U32
    with np.errstate(all="ignore"):
        m = np.where(mean < 0, 0.0, mean)
        if arithmetic.half_mean:
            error = error + np.where(m > 0, np.maximum(2 * U_HALF * m, HALF_SUBNORMAL), 0)
        if half:
            error = error + np.minimum(m, HALF_SMALLEST) * (m < 2 * HALF_SMALLEST)
        y = tone_curve(m)
        through = np.where(
            m - error > 0, y - tone_curve(m - error), np.where(mean + error > 0, tone_curve(m + error), 0)
        )
        ratio = m / (1 + m)
        log2 = np.where(ratio > 0, np.log2(np.where(ratio > 0, ratio, 1)), 0)
        t = GAMMA * np.abs(log2)
        of_ratio = 6 * u + (np.where(m > LARGEST_DIVIDEND, 1 / (1 + LARGEST_DIVIDEND), 0) if half else 0)
        of_log2 = np.where(ratio < 0.5, 6 * u * np.abs(log2), _LOG2_NEAR_1[half])
        of_power = math.log(2) * (GAMMA * of_log2 + 2 * u * t) + (_EXP2_ULPS[half] + 2 * t) * 2 * u
        budget = through + y * (GAMMA * of_ratio + of_power)
        if arithmetic.half_output:
            budget += np.where(y > 0, np.maximum(2 * U_HALF * y, HALF_SUBNORMAL), 0)
    return budget, y
