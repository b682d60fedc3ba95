"""References of blur_tonemap and scale by hand, and budgets that grow for the right reasons."""

import numpy as np
import pytest

from orchestrator.domain.kernel import Array, Tolerance
from orchestrator.ops.blur_tonemap_budget import Arithmetic, blur_tonemap_tolerance
from orchestrator.ops.blur_tonemap_inputs import build
from orchestrator.ops.blur_tonemap_shape import ImageShape, blur_tonemap_reference, box_mean, tone_curve
from orchestrator.ops.scale import scale_reference, scale_tolerance

FP32 = Arithmetic(half_output=False, half_mean=False, half_curve=False)
STORED = Arithmetic(half_output=True, half_mean=False, half_curve=False)
TWICE = Arithmetic(half_output=True, half_mean=True, half_curve=False)
HALF = Arithmetic(half_output=True, half_mean=True, half_curve=True)
SHAPE = ImageShape(24, 16, 2, scrub=False)


def _image(shape: ImageShape = SHAPE, inputs: str = "normal") -> Array:
    return build(inputs, shape, 1).astype(np.float16)


def _fp32(image: Array, shape: ImageShape, *, sums: type[np.floating] = np.float32) -> Array:
    """Rows of the box, then sums of rows, then the curve, each operation rounded; output in fp16."""
    padded = np.pad(image.astype(sums), [(shape.radius,) * 2, (shape.radius,) * 2, (0, 0)], mode="edge")
    total = np.zeros(image.shape, sums)
    reach = 2 * shape.radius + 1
    with np.errstate(over="ignore", invalid="ignore"):
        for dy in range(reach):
            line = np.zeros(image.shape, sums)
            for dx in range(reach):
                line += padded[dy : dy + shape.height, dx : dx + shape.width]
            total += line
        mean = total.astype(np.float32) * np.float32(1 / shape.box)
        colour = np.power(mean[..., :3] / (1 + mean[..., :3]), np.float32(1 / 2.2))
    return np.concatenate([colour, mean[..., 3:]], axis=2).astype(np.float16).astype(np.float64)


def _used(tolerance: Tolerance, got: Array, shape: ImageShape, image: Array) -> float:
    ref = blur_tonemap_reference(image, shape, rows=5)
    return float((np.abs(got - ref) / (tolerance.atol + tolerance.rtol * np.abs(ref))).max())


def test_the_budget_holds_for_an_emulation_and_is_not_far_above_it() -> None:
    tolerance = blur_tonemap_tolerance(_image(), SHAPE, STORED)
    assert 0.1 < _used(tolerance, _fp32(_image(), SHAPE), SHAPE, _image()) < 1.0
    assert 0.0 < tolerance.nmse < 1e-5


def test_fp16_sums_leave_the_budget() -> None:
    """On ordinary data, too, where they do not overflow: as soon as the box is large enough to count."""
    wide = ImageShape(24, 16, 8, scrub=False)
    image = _image(wide)
    tolerance = blur_tonemap_tolerance(image, wide, STORED)
    assert _used(tolerance, _fp32(image, wide), wide, image) < 1.0
    assert _used(tolerance, _fp32(image, wide, sums=np.float16), wide, image) > 1.0


def test_zeros_and_a_missing_power_never_pass() -> None:
    for arithmetic in (FP32, STORED, TWICE, HALF):
        tolerance = blur_tonemap_tolerance(_image(), SHAPE, arithmetic)
        assert _used(tolerance, np.zeros((16, 24, 4)), SHAPE, _image()) > 100
        assert tolerance.nmse < 1e-3


def test_lower_precision_widens_the_budget() -> None:
    full, stored, twice, half = (
        blur_tonemap_tolerance(_image(), SHAPE, a) for a in (FP32, STORED, TWICE, HALF)
    )
    assert full.rtol < 1e-6 < stored.rtol == twice.rtol == half.rtol
    assert full.atol == stored.atol < twice.atol < half.atol < 1e-2


def test_wider_boxes_owe_more_and_clamped_texels_nothing() -> None:
    wide = ImageShape(24, 16, 8, scrub=False)
    assert (
        blur_tonemap_tolerance(_image(), wide, FP32).rtol > blur_tonemap_tolerance(_image(), SHAPE, FP32).rtol
    )
    dark = np.full((16, 24, 4), -1.0, np.float16)
    dark[..., 3] = 1.0
    assert blur_tonemap_tolerance(dark, SHAPE, FP32).atol == 0.0


@pytest.mark.parametrize("inputs", ["nan_texel", "inf_texel", "texel_65504", "negative", "constant_65504"])
def test_odd_images_have_finite_budgets(inputs: str) -> None:
    tolerance = blur_tonemap_tolerance(_image(inputs=inputs), SHAPE, HALF)
    assert 0.0 < tolerance.atol < 1e-2
    assert 0.0 < tolerance.nmse < 1e-4


def test_edges_repeat() -> None:
    image = np.arange(3, dtype=np.float32).reshape(1, 3, 1).repeat(4, axis=2)
    mean = box_mean(image, ImageShape(3, 1, 1, scrub=False), 0, 1)
    np.testing.assert_allclose(mean[0, :, 0], [1 / 3, 1.0, 5 / 3])
    far = box_mean(image, ImageShape(3, 1, 3, scrub=False), 0, 1)
    np.testing.assert_allclose(far[0, :, 0], [5 / 7, 1.0, 9 / 7])


def test_bands_of_rows_make_the_whole_image() -> None:
    whole = blur_tonemap_reference(_image(), SHAPE, rows=16)
    for rows in (1, 3, 7):
        np.testing.assert_array_equal(blur_tonemap_reference(_image(), SHAPE, rows), whole)


def test_the_tone_curve_by_hand() -> None:
    curve = tone_curve(np.array([-0.01, 0.0, 1.0, 65504.0]))
    np.testing.assert_allclose(curve, [0.0, 0.0, 0.5 ** (1 / 2.2), 0.99999306], rtol=1e-7)
    assert np.isnan(tone_curve(np.array([np.nan, np.inf]))).all()
    assert tone_curve(np.array([-np.inf]))[0] == 0.0


def test_g1_21_the_reference_wants_25_texels_that_are_not_finite() -> None:
    """G1-21: 64 × 64, radius 2, one NaN at (31, 31); none once it is scrubbed."""
    for scrub, count in ((False, 25), (True, 0)):
        shape = ImageShape(64, 64, 2, scrub=scrub)
        image = build("nan_texel", shape, 1)
        assert np.isnan(image[31, 31]).all()
        assert np.isnan(blur_tonemap_reference(image, shape, rows=64)).all(axis=2).sum() == count


def test_scale_references_round_through_fp16_first() -> None:
    values = np.array([2048.0, 2052.0, 65504.0, np.inf, np.nan], np.float16)
    np.testing.assert_array_equal(scale_reference(values, 100, half_storage=True), values.astype(np.float64))
    big = scale_reference(np.array([65504.0, -65504.0, 43680.0, 43648.0], np.float16), 150, half_storage=True)
    np.testing.assert_array_equal(big, [np.inf, -np.inf, np.inf, 65472.0])
    assert scale_reference(np.array([65504.0], np.float32), 150, half_storage=False)[0] == 98256.0


def test_scale_budgets() -> None:
    ref = np.array([1.0, 3.0, np.inf])
    for percent, exact in ((100, True), (150, False), (33, False)):
        stored = scale_tolerance(ref, percent, half_storage=True, half_product=False)
        assert (stored == Tolerance(0.0, 0.0, 0.0)) == exact
    assert scale_tolerance(ref, 150, half_storage=False, half_product=False).rtol == 2.0**-23
    assert scale_tolerance(ref, 150, half_storage=True, half_product=True).rtol == 2.0**-10
    rounded = scale_tolerance(ref, 33, half_storage=True, half_product=True)
    assert 2.0**-10 < rounded.rtol < 1.5 * 2.0**-10
    tiny = scale_tolerance(np.array([1.0, 2.0**-20]), 150, half_storage=True, half_product=True)
    assert tiny.atol == 1.5 * 2.0**-14
