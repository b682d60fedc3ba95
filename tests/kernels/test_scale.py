"""scale on three drivers: counts, edges of fp16, infinities, and a driver that packs those wrongly."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.ops.scale import DISTRIBUTIONS
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernel
from tests.kernels.broken import load_broken
from tests.kernels.harness import KERNELS, Bench, make_case
from tests.kernels.mutants_scale import SLANG

WAYS: tuple[dict[str, AxisValue], ...] = (
    {"precision": "fp32"},
    *({"precision": p, "halves": h} for p, h in product(("fp16_storage", "fp16"), ("packed", "native"))),
)
COUNTS = (1, 2, 7, 8, 129, 256, 1000, 1001)
"""Odd, even, whole vectors, one more than two workgroups of words."""
INFINITE = ("half_edges", "not_finite")
"""Inputs whose 16-bit results are infinite."""


@pytest.fixture(scope="module")
def scale() -> LoadedKernel:
    return load_kernel(KERNELS / "scale")


def _cases(bench: Bench, scale: LoadedKernel, workload: Mapping[str, AxisValue], inputs: str) -> list[Case]:
    ways = [{"api": bench.driver.api, **way, "vector": vector} for way in WAYS for vector in (1, 4)]
    return [make_case(scale.kernel, workload, inputs=inputs, axes=way) for way in ways]


def test_every_count_passes_in_every_precision(any_bench: Bench, scale: LoadedKernel) -> None:
    """Inputs, factors and, but on SwiftShader, vectors take turns."""
    finite = [d for d in DISTRIBUTIONS if d not in INFINITE]
    cases = [
        case
        for k, n in enumerate(COUNTS)
        for v, case in enumerate(
            _cases(any_bench, scale, {"n": n, "percent": (33, 100, 150)[k // 3]}, finite[k % 3])
        )
        if any_bench.name == "swiftshader" or (k + v // 2 + v) % 2
    ]
    any_bench.passing(any_bench.possible(scale, cases))


def test_slang_computes_what_glsl_does(vulkan_bench: Bench, scale: LoadedKernel) -> None:
    """In every precision that the driver has, on whole vectors and tails, bit for bit."""
    vulkan_bench.keep = True
    ways = [{"precision": p, "halves": "native"} for p in ("fp16_storage", "fp16")]
    cases = [
        make_case(
            scale.kernel,
            {"n": n, "percent": percent},
            axes={"api": "vulkan", **way, "vector": vector, "language": language},
        )
        for way in ({"precision": "fp32", "halves": "packed"}, *ways)
        for n, percent, vector in ((1000, 33, 4), (1001, 150, 4), (129, 33, 1))
        for language in ("glsl", "slang")
    ]
    outcomes = vulkan_bench.passing(vulkan_bench.possible(scale, cases))
    for glsl, slang in zip(outcomes[::2], outcomes[1::2], strict=True):
        np.testing.assert_array_equal(slang.values, glsl.values)


def test_slang_without_its_bounds_check_writes_behind_the_buffer(vulkan_bench: Bench, tmp_path: Path) -> None:
    """As the tutorial's kernel does for every count that is no multiple of 64. lavapipe drops such writes."""
    checked = 'if (i < uint(WORDS){{ " / 4" if wide }})'
    broken = load_broken(tmp_path / "unchecked", "scale", ((SLANG, checked, "if (true)"),))
    axes: dict[str, AxisValue] = {"api": "vulkan", "precision": "fp32", "vector": 1, "language": "slang"}
    (outcome,) = vulkan_bench.run([(broken, make_case(broken.kernel, {"n": 1001}, axes=axes))])
    if vulkan_bench.name == "swiftshader":
        assert outcome.verdict == "mismatch"
        assert "guard" in outcome.reason
    else:
        assert outcome.verdict == "pass", outcome.reason


def test_times_one_is_rounding_to_fp16(any_bench: Bench, scale: LoadedKernel) -> None:
    """2049 → 2048, 2051 → 2052, 65519 → 65504, 65520 → inf; in fp32 each stays what it is."""
    any_bench.keep = True
    right = [2048.0, 2052.0, 65504.0, np.inf, -2048.0, -2052.0, -65504.0, -np.inf]
    exact = [2049.0, 2051.0, 65519.0, 65520.0, -2049.0, -2051.0, -65519.0, -65520.0]
    cases = _cases(any_bench, scale, {"n": 8, "percent": 100}, "half_edges")
    outcomes = any_bench.run(any_bench.possible(scale, cases))
    assert {o.case.axes["precision"] for o in outcomes} >= {"fp32", "fp16_storage"}
    for outcome in outcomes:
        full = outcome.case.axes["precision"] == "fp32"
        kept = np.array(exact if full else right)
        finite = np.isfinite(kept)
        np.testing.assert_array_equal(outcome.values[finite], kept[finite])
        if full or any_bench.name != "swiftshader":
            assert outcome.verdict == "pass", outcome.reason
            np.testing.assert_array_equal(outcome.values, kept)


@pytest.mark.parametrize("inputs", INFINITE)
def test_what_leaves_fp16_is_infinite(any_bench: Bench, scale: LoadedKernel, inputs: str) -> None:
    """65504 · 1.5 is infinite in 16 bits and a number in 32; NaN stays NaN, infinity infinity."""
    any_bench.keep = True
    cases = [
        case
        for k, (n, percent) in enumerate(((8, 150), (129, 150), (129, 33), (129, 100)))
        for v, case in enumerate(_cases(any_bench, scale, {"n": n, "percent": percent}, inputs))
        if (any_bench.name != "swiftshader" or case.axes["precision"] == "fp32") and (k + v) % 2
    ]
    for outcome in any_bench.passing(any_bench.possible(scale, cases)):
        infinite = np.isinf(outcome.reference)
        np.testing.assert_array_equal(outcome.values[infinite], outcome.reference[infinite])
        assert outcome.numerics.nonfinite_mismatch == 0


def test_swiftshader_packs_what_leaves_fp16_as_nan_and_is_reported(
    vulkan_bench: Bench, scale: LoadedKernel
) -> None:
    """SwiftShader's packHalf2x16 gives NaN for infinity and for 65504 · 1.5; lavapipe's gives infinity."""
    vulkan_bench.keep = True
    axes: dict[str, AxisValue] = {"api": "vulkan", "precision": "fp16_storage"}
    (outcome,) = vulkan_bench.run(
        [(scale, make_case(scale.kernel, {"n": 8}, inputs="half_edges", axes=axes))]
    )
    infinite = np.isinf(outcome.reference)
    assert infinite.sum() == 4
    if vulkan_bench.name == "swiftshader":
        assert outcome.verdict == "mismatch"
        assert outcome.numerics.failing == 4
        assert np.isnan(outcome.values[infinite]).all()
    else:
        assert outcome.verdict == "pass", outcome.reason


@pytest.mark.parametrize("name", ["llvmpipe", "swiftshader"])
def test_more_workgroups_than_one_dimension_of_the_grid_takes(
    name: str, tmp_path: Path, scale: LoadedKernel
) -> None:
    bench = Bench(tmp_path, name, repeats=0)
    axes: dict[str, AxisValue] = {"api": bench.driver.api, "vector": 1}
    case = make_case(scale.kernel, {"n": 32_768 * 64 * 2 + 131}, inputs="ramp", axes=axes)
    (step,) = scale.kernel.passes(case)
    assert step.grid == (32_768, 2, 1)
    bench.passing([(scale, case)])


@pytest.mark.parametrize("way", WAYS[1:], ids=lambda way: "-".join(str(v) for v in way.values()))
def test_a_variant_runs_with_its_own_features_and_no_others(
    vulkan_bench: Bench, scale: LoadedKernel, way: Mapping[str, AxisValue]
) -> None:
    """A job enables what its cases name: native halves in buffers need storage16, not float16."""
    axes = [{"api": "vulkan", **way, "vector": vector} for vector in (1, 4)]
    cases = [make_case(scale.kernel, {"n": n}, axes=a) for a, n in product(axes, (64, 7))]
    if vulkan_bench.possible(scale, cases):
        vulkan_bench.passing(vulkan_bench.possible(scale, cases))
    else:
        assert vulkan_bench.name == "swiftshader"


def test_in_place_results_of_replays_are_alike(any_bench: Bench, scale: LoadedKernel) -> None:
    """Every verified execution starts from the input, not from what the one before it left."""
    any_bench.replays = 10
    outcomes = any_bench.passing(
        any_bench.possible(scale, _cases(any_bench, scale, {"n": 1001, "percent": 150}, "normal"))
    )
    assert all(list(o.numerics.hashes.values()) == [10] for o in outcomes)


def test_budgets_are_above_the_errors_and_less_than_a_hundred_times(
    any_bench: Bench, scale: LoadedKernel
) -> None:
    any_bench.keep = True
    for percent in (33, 150):
        cases = _cases(any_bench, scale, {"n": 1001, "percent": percent}, "normal")
        for outcome in any_bench.passing(any_bench.possible(scale, cases)):
            used = float((np.abs(outcome.values - outcome.reference) / outcome.allowed).max())
            assert 0.1 < used < 1.0, outcome.case.label


def test_points_that_do_not_exist(scale: LoadedKernel) -> None:
    def why(**axes: AxisValue) -> str | None:
        return scale.kernel.invalid(make_case(scale.kernel, {"n": 8}, inputs="ramp", axes=axes))

    assert why() is None
    assert why(precision="fp32", halves="native", api="vulkan") is not None
    assert why(precision="fp16") is not None
    assert why(halves="native") is not None
    assert why(precision="fp16", halves="native", api="vulkan") is None
    assert why(precision="fp32", language="slang") == "language slang needs api vulkan: slangc makes SPIR-V"
    assert why(language="slang", api="vulkan") is not None
    assert why(language="slang", api="vulkan", halves="native") is None
