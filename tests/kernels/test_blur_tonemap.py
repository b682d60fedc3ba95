"""blur_tonemap on three drivers: named inputs, shapes, variants, what is not finite, errors and budgets."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue
from orchestrator.ops.blur_tonemap_inputs import DISTRIBUTIONS
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernel
from tests.kernels.harness import KERNELS, Bench, Outcome, make_case

NAMES = ("blur_tonemap_two_pass", "blur_tonemap_fused")
IMAGE: dict[str, AxisValue] = {"width": 38, "height": 21, "radius": 2}
FIELD: dict[str, AxisValue] = {"width": 64, "height": 64, "radius": 2}
WAYS: tuple[dict[str, AxisValue], ...] = (
    {"precision": "fp32"},
    *({"precision": p, "halves": h} for p, h in product(("fp16_storage", "fp16"), ("packed", "native"))),
)
"""Every precision; GLES has the first two, and SwiftShader as well."""
EACH_PRECISION = (WAYS[0], WAYS[1], WAYS[4])
"""Once each."""
LAYOUTS: tuple[dict[str, AxisValue], ...] = (
    {"source": "global", "tile": "8x8"},
    {"source": "shared", "tile": "16x8"},
    {"source": "global", "tile": "8x8", "columns": 2, "edges": "apart"},
    {"source": "shared", "tile": "16x16", "rows": 2, "columns": 2},
    {"source": "global", "tile": "64x2", "rows": 8},
    {"source": "global", "tile": "32x4", "rows": 4, "edges": "apart"},
)
"""The third has a workgroup that is not at an edge of ``IMAGE``; in 16 bits it moves two texels at once. None
has many rows and columns: 8 rows of 4 columns take llvmpipe 4 seconds of CPU to compile."""
WIDE: dict[str, AxisValue] = {"source": "global", "tile": "8x8", "rows": 2, "columns": 4}


@pytest.fixture(scope="module", params=NAMES)
def blur(request: pytest.FixtureRequest) -> LoadedKernel:
    """Each blur_tonemap kernel in turn."""
    return load_kernel(KERNELS / request.param)


def _run(
    bench: Bench,
    loaded: LoadedKernel,
    inputs: str,
    workload: Mapping[str, AxisValue],
    layout: Mapping[str, AxisValue] = LAYOUTS[0],
) -> list[Outcome]:
    """In every precision that the driver has, fp32 first; all of them pass."""
    bench.keep = True
    axes = [{"api": bench.driver.api, **way, **layout} for way in EACH_PRECISION]
    cases = [make_case(loaded.kernel, workload, inputs=inputs, axes=a) for a in axes]
    return bench.passing(bench.possible(loaded, cases))


def test_named_inputs_pass_in_every_precision_and_layout(any_bench: Bench, blur: LoadedKernel) -> None:
    """Layouts and precisions take turns; every input meets two precisions, every layout most of them."""
    api = any_bench.driver.api
    ways = [
        w for w in WAYS if any_bench.possible(blur, [make_case(blur.kernel, IMAGE, axes={"api": api, **w})])
    ]
    cases = [
        make_case(blur.kernel, IMAGE, inputs=inputs, axes={"api": api, **way, **LAYOUTS[(n + k) % 6]})
        for n, inputs in enumerate(DISTRIBUTIONS)
        for k, way in ((0, WAYS[0]), (3, ways[1 + n % (len(ways) - 1)]))
    ]
    outcomes = any_bench.passing(any_bench.possible(blur, cases))
    assert {o.case.inputs for o in outcomes} == set(DISTRIBUTIONS)
    assert {o.case.axes["tile"] for o in outcomes} == {layout["tile"] for layout in LAYOUTS}


def test_every_shape_passes(any_bench: Bench, blur: LoadedKernel) -> None:
    """Images smaller than the box, than a tile, and ragged; a box wider than a tile. Layouts take turns."""
    shapes = ((1, 1, 1), (1, 40, 2), (40, 1, 3), (65, 33, 1), (33, 65, 8), (64, 16, 2), (3, 2, 8))
    cases = [
        make_case(
            blur.kernel,
            {"width": w, "height": h, "radius": r},
            axes={"api": any_bench.driver.api, **WAYS[(n + k) % 2], **LAYOUTS[(n + k) % 6]},
        )
        for n, (w, h, r) in enumerate(shapes)
        for k in (0, 3)
    ]
    cases += [
        make_case(blur.kernel, {"width": w, "height": 7, "radius": 2}, axes={**cases[0].axes, **way, **WIDE})
        for w, way in ((38, WAYS[1]), (35, WAYS[0]))
    ]
    cases = [case for case in cases if blur.kernel.invalid(case) is None]
    assert len(any_bench.passing(any_bench.possible(blur, cases))) == len(cases) >= 12


def test_g1_12_sums_beyond_fp16_are_means_within_it(any_bench: Bench, blur: LoadedKernel) -> None:
    """G1-12: 25 times 4096 is 102,400, 65,025 ones are more than an fp16 sum can count; alpha is the mean.

    A pure fp16 accumulator is a mutant (``fp16_accumulator``): there is no variant that declares one."""
    for outcome in _run(any_bench, blur, "constant_4096", IMAGE):
        np.testing.assert_allclose(outcome.values[..., 3], 4096.0, rtol=1e-6)
    wide: dict[str, AxisValue] = {"width": 8, "height": 4, "radius": 127}
    for outcome in _run(any_bench, blur, "constant_1", wide):
        half = outcome.case.axes["precision"] != "fp32"
        np.testing.assert_allclose(outcome.values[..., 3], 1.0, rtol=2**-11 if half else 1e-5)


def test_g1_21_one_nan_texel_touches_25_outputs(any_bench: Bench, blur: LoadedKernel) -> None:
    """G1-21: NaN at (31, 31) of 64 × 64, radius 2: exactly the box around it, counted on the host."""
    for inputs in ("nan_texel", "inf_texel"):
        for outcome in _run(any_bench, blur, inputs, FIELD):
            odd = ~np.isfinite(outcome.values)
            assert (odd.any(axis=2) == odd.all(axis=2)).all()
            rows, columns = np.nonzero(odd.all(axis=2))
            assert len(rows) == 25
            assert (rows.min(), rows.max(), columns.min(), columns.max()) == (29, 33, 29, 33)
            assert outcome.numerics.nan + outcome.numerics.inf == 100
            assert outcome.numerics.nonfinite_mismatch == 0


def test_g1_21_a_scrubbed_texel_counts_as_black(any_bench: Bench, blur: LoadedKernel) -> None:
    """G1-21, scrubbed by bits: no output is NaN or infinite; 24 texels of 0.5 are left under the box."""
    for inputs in ("nan_texel", "inf_texel"):
        for outcome in _run(any_bench, blur, inputs, {**FIELD, "scrub": True}):
            found = outcome.values
            assert np.isfinite(found).all()
            np.testing.assert_allclose(found[29:34, 29:34, 3], 0.48, rtol=2**-10)


def test_g1_21_negative_light_is_black_and_65504_is_white(any_bench: Bench, blur: LoadedKernel) -> None:
    """G1-21: -0.01 into the power 1/2.2 is 0, not NaN; 65504 is neither infinite nor black in 16 bits."""
    for outcome in _run(any_bench, blur, "negative", IMAGE):
        assert (outcome.values[:, :16, :3] == 0.0).all()
        assert (outcome.values[:, 21:, :3] > 0.6).all()
    for outcome in _run(any_bench, blur, "constant_65504", IMAGE):
        found = outcome.values
        np.testing.assert_allclose(found[..., :3], 1.0, rtol=5e-3)
        np.testing.assert_allclose(found[..., 3], 65504.0, rtol=1e-6)


def test_budgets_are_above_the_errors_and_less_than_a_hundred_times(
    any_bench: Bench, blur: LoadedKernel
) -> None:
    for inputs in ("normal", "dark"):
        for outcome in _run(any_bench, blur, inputs, IMAGE):
            used = float((np.abs(outcome.values - outcome.reference) / outcome.allowed).max())
            assert 0.01 < used < 1.0, outcome.case.label
            assert outcome.numerics.nmse > outcome.tolerance.nmse / 1e4, outcome.case.label


def test_fused_and_two_pass_agree_bit_for_bit_in_fp32(any_bench: Bench) -> None:
    """The mean between them is stored exactly, and both add in one order, in every layout."""
    any_bench.keep = True
    loaded = [load_kernel(KERNELS / name) for name in NAMES]
    cases = [
        (kernel, make_case(kernel.kernel, IMAGE, axes={"api": any_bench.driver.api, **layout}))
        for layout in LAYOUTS
        for kernel in loaded
    ]
    outcomes = any_bench.run([pair for k, c in cases for pair in any_bench.possible(k, [c])])
    assert len(outcomes) == len(cases)
    for two_pass, fused in zip(outcomes[::2], outcomes[1::2], strict=True):
        np.testing.assert_array_equal(two_pass.values, fused.values)


def test_every_replay_gives_the_same_bits(any_bench: Bench, blur: LoadedKernel) -> None:
    any_bench.replays = 20
    axes: dict[str, AxisValue] = {"api": any_bench.driver.api, "source": "shared", "tile": "16x16"}
    (outcome,) = any_bench.passing(any_bench.possible(blur, [make_case(blur.kernel, FIELD, axes=axes)]))
    assert list(outcome.numerics.hashes.values()) == [20 + any_bench.repeats]


def test_points_that_do_not_exist(blur: LoadedKernel) -> None:
    def why(radius: int = 2, inputs: str = "normal", **axes: AxisValue) -> str | None:
        case = make_case(blur.kernel, {**IMAGE, "radius": radius}, inputs=inputs, axes=axes)
        return blur.kernel.invalid(case)

    assert why() is None
    assert why(precision="fp16") == "precision fp16 needs api vulkan; GLES has no 16-bit arithmetic"
    assert why(halves="native", precision="fp16_storage") is not None
    assert why(halves="native", api="vulkan") is not None
    assert why(128) == "radius 128 > 127"
    assert why(5, rows=4) == "rows 4 needs a radius of at most 4"
    assert why(5, columns=2) == "columns 2 needs a radius of at most 4"
    assert why(1, columns=4) == "columns 4 > 3, the width of a box"
    assert why(edges="apart", source="shared") is not None
    assert why(inputs="beyond_half") is None
    assert why(inputs="beyond_half", precision="fp16_storage") is not None
