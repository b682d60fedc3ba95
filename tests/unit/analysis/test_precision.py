"""What the probe's raw bits mean, on drivers that numpy plays (docs/precision.md)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestrator.analysis.precision import measure, precisions, sentence
from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Cost
from orchestrator.domain.precision import Precision
from orchestrator.domain.results import CaseInfo
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.ops.probes_precision import HALVES, Op, Row, evaluate, exact_rows, owed, rows
from tests.results_fixture import timing, trial

ASKED = ("highp", "mediump", "precise", "fp16", "storage16", "pack_half")


@dataclass(frozen=True)
class Format:
    """How a driver's arithmetic unit holds numbers."""

    bits: int
    least_normal: float
    largest: float
    truncates: bool = False
    flushes: bool = False

    def __call__(self, value: float) -> float:
        if value == 0 or not math.isfinite(value):
            return value
        _, exponent = math.frexp(value)
        step = 2.0 ** max(exponent - 1 - self.bits, math.log2(self.least_normal) - self.bits)
        count = math.trunc(value / step) if self.truncates else round(value / step)
        found = count * step
        if self.flushes and abs(found) < self.least_normal:
            return 0.0
        if abs(found) > self.largest:
            return math.copysign(self.largest if self.truncates else math.inf, value)
        return found


FP32 = Format(23, 2.0**-126, float(np.finfo(np.float32).max))
FP16 = Format(10, 2.0**-14, 65504.0)
BF16 = Format(7, 2.0**-126, (2 - 2.0**-7) * 2.0**127)
WIDE10 = Format(10, 2.0**-126, (2 - 2.0**-10) * 2.0**127)
"""Ten bits with the range of fp32: 32768·2 is finite."""


def _computed(row: Row, unit: Format, *, fused: bool) -> float:
    if row.op is Op.CONVERT:
        return unit(row.a)
    narrow = replace(row, a=unit(row.a), b=unit(row.b), c=unit(row.c))
    if row.op is Op.MULADD and not fused:
        return unit(unit(narrow.a * narrow.b) + narrow.c)
    return unit(evaluate(narrow))


def raw_of(
    asked: str, unit: Format, *, fused: bool = False, odd: Callable[[Row], float | None] = lambda _: None
) -> NDArray[np.uint32]:
    """The buffer that a driver with this unit would leave behind; ``odd`` overrides single rows."""
    values = [_computed(r, unit, fused=fused) if (own := odd(r)) is None else own for r in rows(asked)]
    with np.errstate(over="ignore"):
        if asked in HALVES:
            return np.repeat(np.array(values, "<f2").view("<u2"), 2).view("<u4").astype(np.uint32)
        return np.array(values, "<f4").view("<u4").astype(np.uint32)


def probe(asked: str, api: str = "vulkan") -> Case:
    axes = {"api": api, "precision": "asked", "asked": asked}
    return Case("precision_probe", "precision_probe", {}, dict(axes), "rows")


def measured(
    asked: str,
    unit: Format,
    *,
    fused: bool = False,
    odd: Callable[[Row], float | None] = lambda _: None,
    speed: float | None = None,
) -> Precision:
    raw = raw_of(asked, unit, fused=fused, odd=odd)
    return measure(probe(asked), raw, device_id="d", relative_speed=speed)


@pytest.mark.parametrize("asked", ["highp", "precise", "mediump"])
def test_fp32_is_fp32(asked: str) -> None:
    found = measured(asked, FP32)
    assert (found.mantissa_bits, found.largest) == (23, float(np.finfo(np.float32).max))
    assert (found.subnormals, found.rounding, found.nan, found.inf) == (
        "kept",
        "nearest-even",
        "kept",
        "kept",
    )
    assert (found.delivered, found.demoted, found.contraction) == ("fp32", False, "separate")
    assert found.exp_underflow == -103.0
    assert found.remarks == []


@pytest.mark.parametrize("asked", HALVES)
def test_fp16_is_fp16(asked: str) -> None:
    found = measured(asked, FP16)
    assert (found.mantissa_bits, found.largest, found.delivered) == (10, 65504.0, "fp16")
    assert (found.subnormals, found.rounding, found.conversion) == ("kept", "nearest-even", "nearest-even")
    assert found.exp_underflow == -17.0
    assert not found.demoted


def test_fp16_by_truncation() -> None:
    found = measured("fp16", replace(FP16, truncates=True))
    assert (found.mantissa_bits, found.largest, found.delivered) == (10, 65504.0, "fp16")
    assert (found.rounding, found.conversion) == ("toward-zero", "toward-zero")
    assert "sums round toward zero" in sentence(found)


def test_only_conversions_truncate() -> None:
    def odd(row: Row) -> float | None:
        return replace(FP16, truncates=True)(row.a) if row.op is Op.CONVERT else None

    found = measured("fp16", FP16, odd=odd)
    assert (found.rounding, found.conversion) == ("nearest-even", "toward-zero")
    assert "conversions round toward zero" in sentence(found)


def test_g1_13_fp32_that_lands_on_the_fp16_grid_is_a_failure() -> None:
    """G1-13: 1 + 2⁻¹² comes back as 1, 1 + 2⁻¹⁰ survives, 32768·2 is infinite."""
    for asked in ("highp", "precise"):
        found = measured(asked, FP16)
        assert (found.delivered, found.demoted) == ("fp16", True)
        assert sentence(found) == (
            f"asked {asked}, got fp16 (10 bits, largest 65504): results are wrong by design of the driver"
        )


def test_g1_13_fp16_bits_with_the_range_of_fp32_are_neither() -> None:
    """G1-13: 32768·2 is finite with ten bits."""
    found = measured("highp", WIDE10)
    assert (found.mantissa_bits, found.delivered, found.demoted) == (10, "other", True)
    assert found.largest > 1e38
    assert not measured("mediump", WIDE10).demoted


def test_g1_13_mediump_that_runs_as_fp32_is_information() -> None:
    """G1-13: more than was asked for is never a failure."""
    found = measured("mediump", FP32)
    assert not found.demoted
    assert sentence(found) == "mediump runs as fp32 here: no gain to expect"


def test_g1_14_a_soc_that_ignores_mediump_and_one_that_obeys_it() -> None:
    """G1-14: the same class and speed means no effect; fp16 at twice the rate is one."""
    ignores = measured("mediump", FP32, speed=1.01)
    obeys = measured("mediump", replace(FP16, flushes=True), speed=1.93)
    assert sentence(ignores) == "mediump runs as fp32 here: no gain to expect"
    assert sentence(obeys) == (
        "mediump runs as fp16 here: 10 bits, largest 65504, subnormals flushed, 1.9 times the rate of highp"
    )
    assert sentence(measured("mediump", FP32, speed=1.5)) == (
        "mediump runs as fp32 here, yet at 1.5 times the rate of highp"
    )


def test_bfloat16_is_less_than_mediump_promises() -> None:
    found = measured("mediump", BF16)
    assert (found.mantissa_bits, found.largest, found.delivered) == (7, BF16.largest, "other")
    assert (found.rounding, found.subnormals, found.demoted) == ("nearest-even", "kept", True)


@pytest.mark.parametrize(("asked", "unit"), [("highp", FP32), ("fp16", FP16), ("pack_half", FP16)])
def test_subnormals_flushed(asked: str, unit: Format) -> None:
    found = measured(asked, replace(unit, flushes=True))
    assert found.subnormals == "flushed"
    assert not found.demoted
    assert found.exp_underflow == (-87.0 if unit is FP32 else -9.5)


def test_g1_21_a_lost_nan_is_found_in_the_bits() -> None:
    """G1-21: a compiler that assumes no NaN turns 0·inf into 0; the host reads the bits."""

    def odd(row: Row) -> float | None:
        return 0.0 if row.group == "nan" and row.op is Op.MUL and row.a == 0 else None

    found = measured("highp", FP32, odd=odd)
    assert found.nan == "lost"
    assert found.remarks == ["0 * inf gives 0"]
    assert sentence(found).endswith("beware: 0 * inf gives 0")


def test_infinity_that_saturates_is_lost() -> None:
    def odd(row: Row) -> float | None:
        return FP32.largest if row.group == "inf" else None

    found = measured("highp", FP32, odd=odd)
    assert found.inf == "lost"
    assert "inf + 1 gives 3.403e+38" in found.remarks


@pytest.mark.parametrize("wrong", [math.nan, -1e-3, 1e-3, math.inf])
def test_exp_that_does_not_stay_at_zero_is_told(wrong: float) -> None:
    """The pitfall of fast-math: exp(old maximum - new maximum) of a large gap poisons an online softmax."""

    def odd(row: Row) -> float | None:
        return wrong if row.op is Op.EXP and row.a == -math.inf else None

    (remark,) = measured("highp", FP32, odd=odd).remarks
    assert remark.startswith("exp(-inf) gives")


def test_exp_that_underflows_early_is_told() -> None:
    def odd(row: Row) -> float | None:
        return 0.0 if row.op is Op.EXP and row.a < -4 else None

    found = measured("highp", FP32, odd=odd)
    assert found.exp_underflow == -1.0
    assert "exp(-5) gives 0" in found.remarks


def test_contraction() -> None:
    assert measured("highp", FP32, fused=True).contraction == "fused"
    assert not measured("highp", FP32, fused=True).demoted
    assert measured("fp16", FP16, fused=True).contraction == "fused"
    assert measured("pack_half", FP16, fused=True).contraction == "unknown"
    ignored = measured("precise", FP32, fused=True)
    assert ignored.demoted
    assert "NoContraction is ignored" in sentence(ignored)


def test_what_max_makes_of_nan() -> None:
    def first(row: Row) -> float | None:
        return math.nan if row.group == "max_nan" and math.isnan(row.a) else None

    def both(row: Row) -> float | None:
        return math.nan if row.group == "max_nan" else None

    assert measured("highp", FP32).max_nan == "number"
    assert measured("highp", FP32, odd=first).max_nan == "mixed"
    assert measured("highp", FP32, odd=both).max_nan == "nan"


def test_speed_is_part_of_the_sentence_of_fp16() -> None:
    slow = measured("fp16", replace(FP16, flushes=True), speed=0.066)
    assert sentence(slow) == (
        "fp16: 10 bits, largest 65504, subnormals flushed, 0.066 times the rate of fp32"
    )


def test_a_buffer_that_is_cut_or_unwritten_is_refused() -> None:
    raw = raw_of("highp", FP32)
    for bad in (raw[:-1], np.where(np.arange(raw.size) == 5, 0x7FC0_DEAD, raw).astype(np.uint32)):
        with pytest.raises(ValueError, match=r"Run it again"):
            measure(probe("highp"), bad)


def test_precisions_of_a_run() -> None:
    """Whole buffers only, whatever the verdict; speed from the fma probe of the same device and API."""
    cases = [probe(a) for a in ("highp", "mediump", "fp16")]
    rates = [_fma("fp32", "highp"), _fma("fp32", "mediump")]
    infos = {c.case_id: _info(c) for c in (*cases, *rates)}
    blobs = {
        "h": raw_of("highp", FP16).astype("<u4").tobytes(),
        "m": raw_of("mediump", FP16).astype("<u4").tobytes(),
        "cut": b"\0" * 8,
    }

    def came(point: Case, blob: str, verdict: Verdict) -> Trial:
        return replace(trial(point, "d", verdict), tensors={"raw": blob})

    trials = [
        came(cases[0], "h", Verdict.MISMATCH),
        came(cases[1], "m", Verdict.PASS),
        came(cases[2], "cut", Verdict.CRASHED),
        trial(cases[2], "other", Verdict.CRASHED),
        replace(trial(rates[0], "d"), timing=timing(1_000_000)),
        replace(trial(rates[1], "d"), timing=timing(500_000)),
    ]
    highp, mediump = precisions(trials, infos, blobs.__getitem__)
    assert (highp.device_id, highp.asked, highp.demoted, highp.relative_speed) == ("d", "highp", True, 1.0)
    assert (mediump.asked, mediump.delivered, mediump.relative_speed) == ("mediump", "fp16", 2.0)


@pytest.mark.parametrize("asked", ASKED)
def test_rows_fit_their_precision(asked: str) -> None:
    """Every row that the device checks is exact in what is asked for, or the check would be unfair."""
    unit = FP16 if asked in HALVES else FP32
    for row in exact_rows(asked):
        assert _computed(row, unit, fused=False) == owed(row), row.text


def test_precise_owes_a_rounded_product() -> None:
    row = exact_rows("precise")[-1]
    assert owed(row) == 0.0
    assert _computed(row, FP32, fused=True) == 2.0**-24


def _fma(precision: str, hint: str) -> Case:
    axes = {"api": "vulkan", "precision": precision, "hint": hint}
    return Case("fma", "fma", {"groups": 64}, dict(axes), "whole")


def _info(point: Case) -> CaseInfo:
    return CaseInfo(point, "0" * 16, Cost(1_000_000, 64, 64), {}, (64, 1, 1), 0, 1, role="probe")
