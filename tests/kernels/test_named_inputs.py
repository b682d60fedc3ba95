"""Every named input passes in the variants that a driver sees of it (N1 to N10, N15); one job a driver."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.conftest import NAMES
from tests.kernels.drivers import DRIVERS, VULKAN_DRIVERS, driver
from tests.kernels.harness import Bench, Outcome
from tests.kernels.named_inputs import (
    FP32_ONLY,
    MASKED_WORKLOADS,
    SIXTEEN_BITS,
    WORKLOADS,
    Workload,
    named_case,
    named_cases,
    sixteen_bits,
)

Outcomes = Callable[[str], Sequence[Outcome]]
"""Driver → what became of all its cases."""

KEYS = (9, 16, 33, 40)


@pytest.fixture(scope="module")
def outcomes(kernels: dict[str, LoadedKernel], tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Run when the first is asked for."""

    @cache
    def run(name: str) -> Sequence[Outcome]:
        cases = [
            (kernels[kernel], case)
            for kernel in NAMES
            for case in named_cases(kernels[kernel].kernel, driver(name))
        ]
        return Bench(tmp_path_factory.mktemp(name), name, keep=True, repeats=0).run(cases)

    return run


@pytest.fixture(params=DRIVERS)
def found(request: pytest.FixtureRequest, outcomes: Outcomes) -> Sequence[Outcome]:
    return outcomes(request.param)


def _passing(found: Sequence[Outcome], inputs: str) -> list[Outcome]:
    """The outcomes of an input, of both kernels; all pass."""
    chosen = [o for o in found if o.case.inputs == inputs]
    assert {o.case.kernel for o in chosen} == set(NAMES)
    wrong = [f"{o.case.label}: {o.verdict} {o.reason} {o.end.log}" for o in chosen if o.verdict != "pass"]
    assert not wrong, "\n".join(wrong)
    return chosen


@pytest.mark.parametrize("inputs", WORKLOADS)
def test_named_inputs_pass(outcomes: Outcomes, inputs: str) -> None:
    """On each driver; beyond_half, which has fp32 only, on llvmpipe and on one with Vulkan."""
    chosen = [o for name in DRIVERS for o in outcomes(name) if o.case.inputs == inputs]
    wrong = [f"{o.case.label}: {o.verdict} {o.reason} {o.end.log}" for o in chosen if o.verdict != "pass"]
    assert not wrong, "\n".join(wrong)
    assert {(o.case.kernel, o.case.axes["api"]) for o in chosen} == {
        (kernel, api) for kernel in NAMES for api in ("gles", "vulkan")
    }


def test_every_kernel_meets_every_input_in_fp32_and_in_16_bits_through_both_apis(
    loaded: LoadedKernel,
) -> None:
    """lavapipe has every way of 16 bits; every form and hint is somewhere."""
    cases = {name: named_cases(loaded.kernel, driver(name)) for name in DRIVERS}
    for inputs in WORKLOADS:
        of = {name: [c for c in found if c.inputs == inputs] for name, found in cases.items()}
        expected = {True} if inputs in FP32_ONLY else {True, False}
        assert {c.axes["precision"] == "fp32" for c in of["llvmpipe"]} == expected
        assert {c.axes["precision"] == "fp32" for n in VULKAN_DRIVERS for c in of[n]} == expected
    every = [c for found in cases.values() for c in found]
    ways = {(c.axes["precision"], c.axes["halves"]) for c in cases["lavapipe"]}
    assert ways == {("fp32", "packed"), *((way["precision"], way["halves"]) for way in SIXTEEN_BITS)}
    for axis in ("vector", "layout", "rows", "hint"):
        declared = [a.values for a in loaded.kernel.axes if a.name == axis]
        assert not declared or {c.axes[axis] for c in every} == set(declared[0] or ())


def test_every_distribution_has_a_shape(loaded: LoadedKernel) -> None:
    assert set(WORKLOADS | MASKED_WORKLOADS) == set(loaded.kernel.distributions)


@pytest.mark.parametrize(
    ("inputs", "right"),
    [("n3_logit_minus_60000", 3.0), ("n3_logit_minus_20000", 3.0), ("n5_first_tile_masked", 47.5)],
)
def test_g1_03_no_finite_minus_infinity_and_no_nan_in_the_rescale(
    found: Sequence[Outcome], inputs: str, right: float
) -> None:
    """G1-03: logits of -60000 and -20000 give 3.0, first tiles of -inf 47.5, in 16 bits, too."""
    for outcome in _passing(found, inputs):
        np.testing.assert_allclose(outcome.values, right, rtol=1e-3)


def test_g1_03_a_first_tile_of_32_keys_that_are_all_masked(
    any_bench: Bench, kernels: dict[str, LoadedKernel]
) -> None:
    """G1-03: as in the report, where a workgroup can be as large."""
    any_bench.keep = True
    tile = "32x32" if any_bench.driver.limits["invocations"] >= 1024 else "16x16"
    flash = kernels["attention_flash"]
    case = named_case(
        flash.kernel, "n5_first_tile_masked", {"head_dim": 4}, api=any_bench.driver.api, tile=tile
    )
    (outcome,) = any_bench.passing([(flash, case)])
    np.testing.assert_allclose(outcome.values, 47.5, rtol=1e-3)


@pytest.mark.parametrize(("inputs", "right"), [("n1_logit_151", 3.0), ("n1_logit_12", 3.000282)])
def test_g1_05_exp_does_not_overflow(outcomes: Outcomes, inputs: str, right: float) -> None:
    """G1-05: logits of 151.29 overflow exp in fp32, logits of 12 in fp16: every way of 16 bits passes."""
    ways: set[str] = set()
    for name in DRIVERS:
        for outcome in _passing(outcomes(name), inputs):
            axes = outcome.case.axes
            ways.add(f"{axes['precision']} {axes['halves']}")
            if axes["precision"] == "fp32" and axes["hint"] != "mediump":
                np.testing.assert_allclose(outcome.values, right, atol=1e-6)
    assert ways >= {"fp32 packed", *(f"{w['precision']} {w['halves']}" for w in SIXTEEN_BITS)}


@pytest.mark.parametrize(
    ("inputs", "right"),
    [("n8_constant_500", 500.0), ("n8_constant_40", 40.0), ("n8_constant_32", 32.0), ("n8_alternating", 2.0)],
)
def test_g1_06_accumulators_do_not_overflow_or_stick(
    found: Sequence[Outcome], inputs: str, right: float
) -> None:
    """G1-06: 500, 40, 32 and 2.0 with 32-bit sums; with fp16 sums (fp16_all) the inputs are refused."""
    for outcome in _passing(found, inputs):
        assert outcome.case.axes["precision"] != "fp16_all"
        np.testing.assert_allclose(outcome.values, right, rtol=1e-5)


def test_g1_09_padding_of_the_last_tile_has_no_weight(
    any_bench: Bench, kernels: dict[str, LoadedKernel]
) -> None:
    """G1-09: zero padding would win over logits of -50. All numbers of keys on llvmpipe, each on one of the
    others; in fp32 and in the ways of 16 bits, in turns."""
    any_bench.keep = True
    api, turn = any_bench.driver.api, DRIVERS.index(any_bench.name)
    halves = sixteen_bits(api) if any_bench.name == "lavapipe" else sixteen_bits(api)[:1]
    cases = [
        (
            kernels[kernel],
            named_case(
                kernels[kernel].kernel,
                "n7_logit_minus_50",
                _of_length(keys),
                api=api,
                tile="32x32" if kernel == "attention_flash" else "16x16",
                **({"precision": "fp32"}, halves[(n + k) % len(halves)])[(n // 2 + k) % 2],
            ),
        )
        for k, kernel in enumerate(NAMES)
        for n, keys in enumerate(KEYS)
        if turn == 0 or n % 2 == turn - 1
    ]
    ran = [pair for loaded, case in cases for pair in any_bench.possible(loaded, [case])]
    for outcome in any_bench.passing(ran):
        exact = outcome.case.axes["precision"] != "fp16_all"
        np.testing.assert_allclose(outcome.values, 7.0, rtol=1e-5 if exact else 0.02)


def _of_length(keys: int) -> Workload:
    return {"seq": keys, "kv_seq": keys}


def test_g1_04_causal_rows_without_keys_are_exactly_zero(found: Sequence[Outcome]) -> None:
    """G1-04: rows 0 to 3 of 8 have no key."""
    for outcome in _passing(found, "n4_rows_without_keys"):
        assert (outcome.values[:, :4] == 0.0).all()
        np.testing.assert_allclose(outcome.values[:, 4:, 0], [[1.0, 1.5, 2.0, 2.5]] * 2, rtol=1e-3)
