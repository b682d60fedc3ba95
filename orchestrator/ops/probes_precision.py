"""What `kernels/precision_probe` computes, row by row: shared by the shader's inputs and by the analysis.

A row is one operation on operands that are exact in the precision that is asked for; its result comes back
as raw bits. The first rows are the ones that the specifications demand (checked on the device), the others
let the host find out what was delivered (orchestrator/analysis/precision.py). docs/precision.md explains.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

HALVES = ("fp16", "storage16", "pack_half")
"""Precisions whose raw results are 16-bit patterns, twice in each word; those of the others are fp32."""

MANTISSAS = (7, 10, 16, 23)
"""Mantissa bits of bfloat16, fp16, the 24-bit floats of some GPUs, and fp32: rounding is known for these."""

EXP_ARGUMENTS = (
    0.0, -1.0, -5.0, -9.0, -9.5, -10.0, -10.5, -11.0, -12.0, -14.0, -16.0, -16.5, -17.0, -17.5, -18.0, -20.0,
    -40.0, -60.0, -80.0, -86.0, -87.0, -87.5, -88.0, -90.0, -95.0, -100.0, -103.0, -104.0, -105.0, -110.0,
    -200.0, -1000.0, -65504.0, -math.inf,
)  # fmt: skip
"""All exact in fp16. e^-9.7 is its smallest normal number and e^-16.6 its smallest one;
for fp32 these are e^-87.3 and e^-103.3."""

_MAX32 = (2 - 2.0**-23) * 2.0**127


class Op(IntEnum):
    """As the template numbers them; CONVERT takes the fp32 operand, the others narrow ones."""

    CONVERT = 0
    MUL = 1
    ADD = 2
    MAX = 3
    EXP = 4
    MULADD = 5


@dataclass(frozen=True, slots=True)
class Row:
    """``op`` of a, b and c; ``group`` says what it is for."""

    group: str
    op: Op
    a: float
    b: float = 0.0
    c: float = 0.0

    @property
    def text(self) -> str:
        match self.op:
            case Op.CONVERT:
                return f"conversion of {self.a:g}"
            case Op.MUL:
                return f"{self.a:g} * {self.b:g}"
            case Op.ADD:
                return f"{self.a:g} + {self.b:g}"
            case Op.MAX:
                return f"max({self.a:g}, {self.b:g})"
            case Op.EXP:
                return f"exp({self.a:g})"
            case Op.MULADD:
                return f"{self.a:g} * {self.b:g} + {self.c:g}"


def rows(asked: str) -> tuple[Row, ...]:
    """Of one precision, those that the device checks first."""
    return (*exact_rows(asked), *_ROWS)


def exact_rows(asked: str) -> tuple[Row, ...]:
    """What every driver owes: results that are representable, in the range that is guaranteed.

    highp and precise: fp32 with correctly rounded sums and products (ESSL 3.10, 4.5.1; Vulkan, Precision of
    Operations), so the values of field case G1-13 come back exactly. mediump: 2⁻¹⁰ relative within ±2¹⁴.
    16 bits: IEEE binary16, normal numbers.
    """
    if asked in HALVES:
        return _EXACT_HALF
    return {"highp": _EXACT_HIGHP, "precise": (*_EXACT_HIGHP, _UNFUSED), "mediump": _EXACT_MEDIUMP}[asked]


def evaluate(row: Row) -> float:
    """The row in float64, in which every product and sum of a checked row is exact."""
    with np.errstate(invalid="ignore"):
        a, b, c = np.float64(row.a), np.float64(row.b), np.float64(row.c)
        match row.op:
            case Op.CONVERT:
                return float(a)
            case Op.MUL:
                return float(a * b)
            case Op.ADD:
                return float(a + b)
            case Op.MAX:
                return float(np.fmax(a, b))
            case Op.EXP:
                return float(np.exp(a))
            case Op.MULADD:
                return float(a * b + c)


def owed(row: Row) -> float:
    """The result that a checked row must have: a product that is not contracted is rounded to fp32 first."""
    if row.op is Op.MULADD:
        return float(np.float32(row.a * row.b)) + row.c
    return evaluate(row)


def packed(table: Iterable[Row]) -> NDArray[np.uint32]:
    """Rows as the shader reads them: a, b, c as fp32, op, then a, b, c as fp16 and a 0; 24 bytes each."""
    operands = np.array([(r.a, r.b, r.c) for r in table], np.float64)
    ops = np.array([[r.op] for r in table], "<u4")
    with np.errstate(over="ignore", invalid="ignore"):
        singles = operands.astype("<f4")
        halves = np.zeros((len(ops), 4), "<f2")
        halves[:, :3] = operands
    words = [singles.view("<u4"), ops, halves.view("<u4")]
    return np.ascontiguousarray(np.concatenate(words, axis=1), "<u4").reshape(-1)


def _mantissa() -> Iterable[Row]:
    for k in range(1, 24):
        yield Row("mantissa_mul", Op.MUL, 1 + 2.0**-k, 1.0)
    for k in range(1, 25):
        yield Row("mantissa_add", Op.ADD, 1.0, 2.0**-k)


def _largest() -> Iterable[Row]:
    powers = (15, 16, 31, 32, 62, 63, 64, 126, 127)
    candidates = {(2 - 2.0**-m) * 2.0**e for m in MANTISSAS for e in powers} | {2.0**e for e in powers}
    for value in sorted(candidates):
        yield Row("largest", Op.MUL, value / 2, 2.0)


def _subnormals(name: str, least_normal: float) -> Iterable[Row]:
    yield Row(name, Op.MUL, least_normal, 0.5)
    yield Row(name, Op.MUL, least_normal / 2, 2.0)
    yield Row(name, Op.MUL, least_normal / 4, 1.0)


def _rounding() -> Iterable[Row]:
    for m in MANTISSAS:
        base = 2.0 ** (m + 1)  # the first number with a gap of 2 after it
        for a, b in ((base, 1.0), (base, 3.0), (2 * base, 3.0), (-base, -3.0)):
            yield Row(f"rounding{m}", Op.ADD, a, b)


def _conversion() -> Iterable[Row]:
    for a in (1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 3 * 2.0**-12, -1 - 3 * 2.0**-12, 65519.0, 65520.0):
        yield Row("conversion", Op.CONVERT, a)


def _not_finite() -> Iterable[Row]:
    nan, inf = math.nan, math.inf
    yield Row("nan", Op.MUL, 0.0, inf)
    yield Row("nan", Op.ADD, inf, -inf)
    yield Row("nan", Op.ADD, nan, 1.0)
    yield Row("nan", Op.MUL, nan, 1.0)
    yield Row("nan", Op.EXP, nan)
    yield Row("nan", Op.CONVERT, nan)
    yield Row("inf", Op.MUL, inf, 1.0)
    yield Row("inf", Op.ADD, inf, 1.0)
    yield Row("inf", Op.ADD, -inf, -1.0)
    yield Row("inf", Op.MAX, inf, 1.0)
    yield Row("inf", Op.CONVERT, inf)
    yield Row("max_nan", Op.MAX, nan, 1.0)
    yield Row("max_nan", Op.MAX, 1.0, nan)


# (1 + d)² - (1 + 2d) is d² when the product is not rounded first, and 0 when it is.
_UNFUSED = Row("fused23", Op.MULADD, 1 + 2.0**-12, 1 + 2.0**-12, -1 - 2.0**-11)

_ROWS = (
    *_mantissa(),
    *_largest(),
    *_subnormals("subnormal32", 2.0**-126),
    *_subnormals("subnormal16", 2.0**-14),
    *_rounding(),
    *_conversion(),
    *_not_finite(),
    *(Row("exp", Op.EXP, x) for x in EXP_ARGUMENTS),
    _UNFUSED,
    Row("fused10", Op.MULADD, 1 + 2.0**-6, 1 + 2.0**-6, -1 - 2.0**-5),
)

_EXACT_HIGHP = (
    Row("exact", Op.MUL, 1 + 2.0**-10, 1.0),
    Row("exact", Op.MUL, 1 + 2.0**-12, 1.0),
    Row("exact", Op.MUL, 1 + 2.0**-23, 1.0),
    Row("exact", Op.MUL, 32768.0, 2.0),
    Row("exact", Op.ADD, 1.0, 2.0**-23),
    Row("exact", Op.ADD, 2.0**24 - 1, 1.0),
    Row("exact", Op.MUL, _MAX32 / 2, 2.0),
)
_EXACT_MEDIUMP = (
    Row("exact", Op.MUL, 1 + 2.0**-10, 1.0),
    Row("exact", Op.MUL, 1.5, 1.5),
    Row("exact", Op.MUL, 4096.0, 3.0),
    Row("exact", Op.ADD, 512.0, -0.5),
)
_EXACT_HALF = (
    Row("exact", Op.MUL, 1 + 2.0**-10, 1.0),
    Row("exact", Op.MUL, 32752.0, 2.0),
    Row("exact", Op.ADD, 1024.0, 1.0),
    Row("exact", Op.MUL, 2.0**-13, 0.5),
    Row("exact", Op.MUL, -3.0, 5.0),
)
