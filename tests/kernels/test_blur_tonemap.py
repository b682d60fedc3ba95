"""blur_tonemap on three drivers: named inputs, shapes, variants, what is not finite, errors and budgets.

Compiling takes nearly all the time, least on SwiftShader: that has every layout in fp32 and in 16 bits, and
the others have one of the two of each, so that a driver's programs serve all named inputs.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.ops.blur_tonemap_inputs import DISTRIBUTIONS
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernel
from tests.kernels.drivers import DRIVERS, driver
from tests.kernels.harness import KERNELS, Bench, Outcome, make_case

NAMES = ("blur_tonemap_two_pass", "blur_tonemap_fused")
IMAGE: dict[str, AxisValue] = {"width": 38, "height": 21, "radius": 2}
FIELD: dict[str, AxisValue] = {"width": 64, "height": 64, "radius": 2}
WAYS: tuple[dict[str, AxisValue], ...] = (
    {"precision": "fp32"},
    *({"precision": p, "halves": h} for p, h in product(("fp16_storage", "fp16"), ("packed", "native"))),
)
"""Every precision; GLES has the first two, and SwiftShader as well."""
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


Outcomes = Callable[[str], Sequence[Outcome]]
"""Driver → what became of all named inputs."""


@pytest.fixture(scope="module", params=NAMES)
def blur(request: pytest.FixtureRequest) -> LoadedKernel:
    """Each blur_tonemap kernel in turn."""
    return load_kernel(KERNELS / request.param)


def _variants(name: str, k: int) -> tuple[list[dict[str, AxisValue]], list[dict[str, AxisValue]]]:
    """What a driver has of a kernel: in fp32, and in 16 bits. On lavapipe the two kernels have all ways."""
    layouts = list(enumerate(LAYOUTS))
    full, half = {
        "llvmpipe": (layouts[::2], layouts[1::2]),
        "lavapipe": (layouts[1::2], layouts[::2]),
        "swiftshader": (layouts, layouts),
    }[name]
    ways = 4 if name == "lavapipe" else 1
    return (
        [{"api": driver(name).api, **WAYS[0], **layout} for _, layout in full],
        [{"api": driver(name).api, **WAYS[1 + (n // 2 + 2 * k) % ways], **layout} for n, layout in half],
    )


def _named(loaded: LoadedKernel, name: str) -> list[Case]:
    """Every input in fp32 and in 16 bits, layouts in turns; ``normal`` and ``dark`` in all."""
    full, half = _variants(name, NAMES.index(loaded.kernel.name))
    cases = [
        make_case(loaded.kernel, IMAGE, inputs=inputs, axes=axes)
        for n, inputs in enumerate(DISTRIBUTIONS)
        for part in (full, half)
        for axes in (part if inputs in ("normal", "dark") else (part[n % len(part)],))
    ]
    possible = [case for case in cases if driver(name).refuses(loaded.kernel, case) is None]
    return sorted(possible, key=lambda case: str(case.axes))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Of both kernels; run when the first is asked for."""
    kernels = [load_kernel(KERNELS / name) for name in NAMES]

    @cache
    def run(name: str) -> Sequence[Outcome]:
        cases = [(loaded, case) for loaded in kernels for case in _named(loaded, name)]
        return Bench(tmp_path_factory.mktemp(name), name, keep=True, repeats=0).passing(cases)

    return run


@pytest.fixture(params=DRIVERS)
def found(request: pytest.FixtureRequest, outcomes: Outcomes) -> Sequence[Outcome]:
    return outcomes(request.param)


def _of(found: Sequence[Outcome], inputs: str) -> list[Outcome]:
    """Those of an input, of both kernels, in fp32 and in 16 bits."""
    chosen = [o for o in found if o.case.inputs == inputs]
    assert {(o.case.kernel, o.case.axes["precision"] == "fp32") for o in chosen} == set(
        product(NAMES, (True, False))
    )
    return chosen


def _run(
    bench: Bench, loaded: LoadedKernel, inputs: str, workload: dict[str, AxisValue]
) -> Sequence[Outcome]:
    """In the first layout; SwiftShader has both precisions, each of the others another one of each kernel."""
    bench.keep, bench.repeats = True, 0
    k = NAMES.index(loaded.kernel.name)
    ways = {"llvmpipe": (k,), "lavapipe": (4 - k,), "swiftshader": (0, 1)}[bench.name]
    axes = [{"api": bench.driver.api, **WAYS[way], **LAYOUTS[0]} for way in ways]
    return bench.passing([(loaded, make_case(loaded.kernel, workload, inputs=inputs, axes=a)) for a in axes])


def test_named_inputs_pass_in_every_precision_and_layout(outcomes: Outcomes) -> None:
    """Every layout through both APIs; lavapipe has every precision."""
    ran = [(name, o.case) for name in DRIVERS for o in outcomes(name)]
    for kernel in NAMES:
        for name in DRIVERS:
            of = [case for driver_name, case in ran if (driver_name, case.kernel) == (name, kernel)]
            assert {case.inputs for case in of} == set(DISTRIBUTIONS)
            assert {case.axes["tile"] for case in of} == {layout["tile"] for layout in LAYOUTS}
    ways = {(c.axes["precision"], c.axes["halves"]) for name, c in ran if name == "lavapipe"}
    assert ways == {("fp32", "packed"), *((way["precision"], way["halves"]) for way in WAYS[1:])}


def test_every_shape_passes(any_bench: Bench, blur: LoadedKernel) -> None:
    """Images smaller than the box, than a tile, and ragged; a box wider than a tile. Layouts take turns.

    SwiftShader has each twice, llvmpipe once, lavapipe with one of the two kernels."""
    any_bench.repeats = 0
    k = NAMES.index(blur.kernel.name)
    shapes = ((1, 1, 1), (1, 40, 2), (40, 1, 3), (65, 33, 1), (33, 65, 8), (64, 16, 2), (3, 2, 8))
    turns = (0, 3) if any_bench.name == "swiftshader" else (3 * k,)
    layouts = [
        ({"width": w, "height": h, "radius": r}, {**WAYS[(n + t) % 2], **LAYOUTS[(n + t) % 6]})
        for n, (w, h, r) in enumerate(shapes)
        for t in turns
        if any_bench.name != "lavapipe" or n % 2 == k
    ]
    layouts += [
        ({"width": w, "height": 7, "radius": 2}, {**WAYS[n], **WIDE})
        for n, w in enumerate((35, 38))
        if any_bench.name == "swiftshader" or n == k
    ]
    cases = [
        make_case(blur.kernel, workload, axes={"api": any_bench.driver.api, **axes})
        for workload, axes in layouts
    ]
    cases = [case for case in cases if blur.kernel.invalid(case) is None]
    least = {"llvmpipe": 6, "lavapipe": 3, "swiftshader": 12}[any_bench.name]
    assert len(any_bench.passing(any_bench.possible(blur, cases))) == len(cases) >= least


def test_g1_12_sums_beyond_fp16_are_means_within_it(found: Sequence[Outcome]) -> None:
    """G1-12: 25 times 4096 is 102,400; alpha is the mean.

    A pure fp16 accumulator is a mutant (``fp16_accumulator``): there is no variant that declares one."""
    for outcome in _of(found, "constant_4096"):
        np.testing.assert_allclose(outcome.values[..., 3], 4096.0, rtol=1e-6)


def test_g1_12_as_many_ones_as_no_fp16_sum_can_count(any_bench: Bench, blur: LoadedKernel) -> None:
    """G1-12: 65,025 of them."""
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


def test_g1_21_negative_light_is_black_and_65504_is_white(found: Sequence[Outcome]) -> None:
    """G1-21: -0.01 into the power 1/2.2 is 0, not NaN; 65504 is neither infinite nor black in 16 bits."""
    for outcome in _of(found, "negative"):
        assert (outcome.values[:, :16, :3] == 0.0).all()
        assert (outcome.values[:, 21:, :3] > 0.6).all()
    for outcome in _of(found, "constant_65504"):
        np.testing.assert_allclose(outcome.values[..., :3], 1.0, rtol=5e-3)
        np.testing.assert_allclose(outcome.values[..., 3], 65504.0, rtol=1e-6)


def test_budgets_are_above_the_errors_and_less_than_a_hundred_times(found: Sequence[Outcome]) -> None:
    for inputs in ("normal", "dark"):
        for outcome in _of(found, inputs):
            used = float((np.abs(outcome.values - outcome.reference) / outcome.allowed).max())
            assert 0.01 < used < 1.0, outcome.case.label
            assert outcome.numerics.nmse > outcome.tolerance.nmse / 1e4, outcome.case.label


def test_fused_and_two_pass_agree_bit_for_bit_in_fp32(found: Sequence[Outcome]) -> None:
    """The mean between them is stored exactly, and both add in one order, in every layout."""
    full = [o for o in _of(found, "normal") if o.case.axes["precision"] == "fp32"]
    two_pass, fused = ([o for o in full if o.case.kernel == name] for name in NAMES)
    assert len(fused) >= 3
    for one, other in zip(two_pass, fused, strict=True):
        assert one.case.axes == other.case.axes
        np.testing.assert_array_equal(one.values, other.values)


def test_every_replay_gives_the_same_bits(any_bench: Bench, blur: LoadedKernel) -> None:
    any_bench.replays, any_bench.repeats = 20, 0
    axes: dict[str, AxisValue] = {"api": any_bench.driver.api, "source": "shared", "tile": "16x16"}
    (outcome,) = any_bench.passing(any_bench.possible(blur, [make_case(blur.kernel, FIELD, axes=axes)]))
    assert list(outcome.numerics.hashes.values()) == [20]


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
