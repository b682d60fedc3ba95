"""References of gemm by hand, and budgets that hold for emulations and grow for the right reasons."""

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestrator.domain.kernel import Array, Tolerance
from orchestrator.ops.gemm_budget import Arithmetic, gemm_tolerance, largest_group
from orchestrator.ops.gemm_inputs import build
from orchestrator.ops.gemm_shape import GemmShape, gemm_reference

FP32 = Arithmetic(half_output=False, mediump=False)
STORED = Arithmetic(half_output=True, mediump=False)
MEDIUMP = Arithmetic(half_output=False, mediump=True)
HALF = Arithmetic(half_output=True, mediump=False, half_terms=16)
SHAPE = GemmShape(24, 20, 512, 1, 1, trans_a=False, trans_b=False, alpha=100, beta=0)

F64 = NDArray[np.float64]


def _data(
    inputs: str = "normal", shape: GemmShape = SHAPE, storage: type[np.floating] = np.float32
) -> tuple[Array, Array]:
    a, b, _ = build(inputs, shape, 1)
    return a.astype(storage), b.astype(storage)


def _sum(a: Array, b: Array, sums: type[np.floating] = np.float32, chunk: int = 512) -> F64:
    """Products and sums of one chunk in ``sums``, chunks added in fp32, one product at a time."""
    total = np.zeros((a.shape[1], b.shape[2]), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, a.shape[2], chunk):
            part = np.zeros(total.shape, sums)
            for p in range(start, min(a.shape[2], start + chunk)):
                part = part + np.multiply.outer(a[0, :, p].astype(sums), b[0, p].astype(sums))
            total = total + part.astype(np.float32)
    return total[None].astype(np.float64)


def _used(tolerance: Tolerance, got: F64, ref: F64) -> float:
    return float((np.abs(got - ref) / (tolerance.atol + tolerance.rtol * np.abs(ref))).max())


@pytest.mark.parametrize("inputs", ["normal", "ones", "constant_16", "cancelling"])
def test_the_budget_holds_for_an_emulation_and_is_not_far_above_it(inputs: str) -> None:
    a, b = _data(inputs)
    ref = gemm_reference(a, b, None, SHAPE)
    used = _used(gemm_tolerance(a, b, None, SHAPE, FP32), _sum(a, b), ref)
    assert used < 1.0
    assert used > 0.01 or inputs in ("ones", "constant_16"), "those are exact"


def test_one_term_too_few_and_fp16_sums_leave_the_budget() -> None:
    a, b = _data(storage=np.float16)
    ref = gemm_reference(a, b, None, SHAPE)
    tolerance = gemm_tolerance(a, b, None, SHAPE, STORED)
    assert _used(tolerance, _sum(a, b).astype(np.float16).astype(np.float64), ref) < 1.0
    assert _used(tolerance, _sum(a, b, np.float16), ref) > 1.0
    assert _used(tolerance, _sum(a[:, :, :-1], b[:, :-1]), ref) > 100


def test_fp16_sums_of_a_chunk_stay_within_what_they_declare() -> None:
    a, b = _data(storage=np.float16)
    ref = gemm_reference(a, b, None, SHAPE)
    got = _sum(a, b, np.float16, chunk=16).astype(np.float16).astype(np.float64)
    assert 0.01 < _used(gemm_tolerance(a, b, None, SHAPE, HALF), got, ref) < 1.0
    long = Arithmetic(half_output=True, mediump=False, half_terms=32)
    assert gemm_tolerance(a, b, None, SHAPE, long).atol > gemm_tolerance(a, b, None, SHAPE, HALF).atol


def test_repeated_inexact_terms_are_granted_their_drift_and_no_more() -> None:
    """0.1 · 0.1 · 512: every addition in a binade rounds alike, so errors add up and do not average out."""
    a, b = np.full((1, 24, 512), 0.1, np.float32), np.full((1, 512, 20), 0.1, np.float32)
    ref = gemm_reference(a, b, None, SHAPE)
    used = _used(gemm_tolerance(a, b, None, SHAPE, FP32), _sum(a, b), ref)
    assert 0.01 < used < 1.0


def test_terms_alike_are_counted_over_both_matrices() -> None:
    ones, steps = np.ones((3, 10), np.float32), np.arange(40, dtype=np.float32).reshape(10, 4)
    assert largest_group(ones, np.ones((10, 4), np.float32)) == 10
    assert largest_group(ones, steps) == 1
    assert largest_group(ones, np.floor(steps / 8)) == 2


def test_lower_precision_and_longer_sums_widen_the_budget() -> None:
    a, b = _data()
    full, stored, mediump, half = (
        gemm_tolerance(a, b, None, SHAPE, x) for x in (FP32, STORED, MEDIUMP, HALF)
    )
    assert full.rtol == mediump.rtol == 0.0
    assert stored.rtol == half.rtol == pytest.approx(2.0**-10, rel=0.01)
    assert 30 * full.atol < mediump.atol
    assert stored.atol < half.atol
    short = GemmShape(24, 20, 64, 1, 1, trans_a=False, trans_b=False, alpha=100, beta=0)
    assert gemm_tolerance(a[:, :, :64], b[:, :64], None, short, FP32).atol < full.atol / 4


def test_alpha_scales_and_beta_adds() -> None:
    a, b = _data()
    c = np.full((1, 24, 20), 100.0, np.float32)
    plain = gemm_tolerance(a, b, None, SHAPE, FP32)
    half = GemmShape(24, 20, 512, 1, 1, trans_a=False, trans_b=False, alpha=50, beta=0)
    assert gemm_tolerance(a, b, None, half, FP32).atol == pytest.approx(plain.atol / 2, rel=0.01)
    third = GemmShape(24, 20, 512, 1, 1, trans_a=False, trans_b=False, alpha=100, beta=33)
    assert gemm_tolerance(a, b, c, third, FP32).atol > plain.atol + 100 * 0.33 * 2.0**-24


def test_zeros_never_pass() -> None:
    a, b = _data()
    ref = gemm_reference(a, b, None, SHAPE)
    for arithmetic in (FP32, STORED, MEDIUMP, HALF):
        tolerance = gemm_tolerance(a, b, None, SHAPE, arithmetic)
        assert _used(tolerance, np.zeros_like(ref), ref) > 10
        assert tolerance.nmse < 1e-3


@pytest.mark.parametrize("inputs", ["nan_row", "inf_row", "nan_column", "inf_column", "nan_in_c"])
def test_odd_matrices_have_finite_budgets(inputs: str) -> None:
    shape = GemmShape(9, 7, 33, 2, 1, trans_a=True, trans_b=True, alpha=33, beta=50)
    a, b, c = build(inputs, shape, 1)
    tolerance = gemm_tolerance(a, b, c, shape, FP32)
    assert 0.0 < tolerance.atol < 1e-4
    assert 0.0 < tolerance.nmse < 1e-9


def test_references_by_hand() -> None:
    shape = GemmShape(2, 2, 2, 4, 2, trans_a=False, trans_b=True, alpha=50, beta=-100)
    a = np.arange(16, dtype=np.float32).reshape(4, 2, 2)
    b = np.array([[[1, 0], [0, 1]], [[0, 1], [2, 0]]], np.float32)
    c = np.ones((4, 2, 2), np.float32)
    out = gemm_reference(a, b, c, shape)
    np.testing.assert_array_equal(out[1], [[1.0, 1.5], [2.0, 2.5]])
    np.testing.assert_array_equal(out[2], [[3.5, 7.0], [4.5, 9.0]])


def test_transposes_are_of_the_same_numbers() -> None:
    plain = GemmShape(3, 4, 5, 2, 1, trans_a=False, trans_b=False, alpha=100, beta=0)
    turned = GemmShape(3, 4, 5, 2, 1, trans_a=True, trans_b=True, alpha=100, beta=0)
    a, b, _ = build("normal", plain, 1)
    at, bt, _ = build("normal", turned, 1)
    assert (at.shape, bt.shape) == (turned.a_shape, turned.b_shape)
    np.testing.assert_array_equal(gemm_reference(a, b, None, plain), gemm_reference(at, bt, None, turned))


@pytest.mark.parametrize(
    ("inputs", "axis"), [("nan_row", 2), ("inf_row", 2), ("nan_column", 1), ("inf_column", 1)]
)
def test_what_is_not_finite_is_one_row_or_column_of_the_reference(inputs: str, axis: int) -> None:
    """A matrix library that multiplied padding would spread it."""
    shape = GemmShape(13, 9, 17, 2, 1, trans_a=False, trans_b=False, alpha=100, beta=0)
    a, b, _ = build(inputs, shape, 1)
    odd = ~np.isfinite(gemm_reference(a, b, None, shape))
    lines = odd.any(axis=axis)
    np.testing.assert_array_equal(lines, odd.all(axis=axis))
    assert lines.sum() == (1 if axis == 2 else 2), "B is shared by both products"
