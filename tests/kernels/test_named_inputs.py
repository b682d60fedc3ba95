"""Every named input passes on each of three drivers in the variants where it exists (N1–N10, N15)."""

import numpy as np
import pytest

from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.harness import Bench, Outcome
from tests.kernels.named_inputs import (
    MASKED_WORKLOADS,
    SIXTEEN_BITS,
    WORKLOADS,
    Workload,
    named_case,
    sixteen_bits,
    variants,
    vulkan_variants,
)

FP32_ONLY = {"beyond_half"}


def _run(bench: Bench, loaded: LoadedKernel, inputs: str, **axes: str | int) -> list[Outcome]:
    """In fp32, the first outcome, and in every way of 16 bits that the driver has."""
    precisions = ({"precision": "fp32"}, *sixteen_bits(bench.driver.api))
    cases = [named_case(loaded.kernel, inputs, api=bench.driver.api, **p, **axes) for p in precisions]
    return bench.run(bench.possible(loaded, cases))


@pytest.mark.parametrize("inputs", WORKLOADS)
def test_named_inputs_pass(bench: Bench, loaded: LoadedKernel, inputs: str) -> None:
    number = list(WORKLOADS).index(inputs)
    cases = [named_case(loaded.kernel, inputs, **axes) for axes in variants(loaded.kernel, number)]
    possible = [c for c in cases if loaded.kernel.invalid(c) is None]
    assert possible
    bench.passing([(loaded, c) for c in possible])


@pytest.mark.parametrize("inputs", WORKLOADS)
def test_named_inputs_pass_on_vulkan(vulkan_bench: Bench, loaded: LoadedKernel, inputs: str) -> None:
    number = list(WORKLOADS).index(inputs)
    cases = [named_case(loaded.kernel, inputs, **axes) for axes in vulkan_variants(loaded.kernel, number)]
    possible = vulkan_bench.possible(loaded, cases)
    assert {case.axes["precision"] == "fp32" for _, case in possible} == (
        {True} if inputs in FP32_ONLY else {True, False}
    )
    vulkan_bench.passing(possible)


def test_every_way_of_16_bits_meets_some_named_input(loaded: LoadedKernel) -> None:
    found = {
        (axes["precision"], axes["halves"])
        for n in range(len(WORKLOADS))
        for axes in vulkan_variants(loaded.kernel, n)
        if "halves" in axes
    }
    assert found == {(way["precision"], way["halves"]) for way in SIXTEEN_BITS}


def test_every_distribution_has_a_shape(loaded: LoadedKernel) -> None:
    assert set(WORKLOADS | MASKED_WORKLOADS) == set(loaded.kernel.distributions)


@pytest.mark.parametrize(
    ("inputs", "right"),
    [("n3_logit_minus_60000", 3.0), ("n3_logit_minus_20000", 3.0), ("n5_first_tile_masked", 47.5)],
)
def test_g1_03_no_finite_minus_infinity_and_no_nan_in_the_rescale(
    any_bench: Bench, loaded: LoadedKernel, inputs: str, right: float
) -> None:
    """G1-03: logits of -60000 and -20000 give 3.0, a first tile of -inf 47.5, in 16 bits, too."""
    any_bench.keep = True
    tile = "32x32" if any_bench.driver.limits["invocations"] >= 1024 else "8x8"
    for outcome in _run(any_bench, loaded, inputs, tile=tile):
        assert outcome.verdict == "pass", outcome.reason
        assert outcome.tensor is not None
        np.testing.assert_allclose(outcome.tensor, right, rtol=1e-3)


@pytest.mark.parametrize(("inputs", "right"), [("n1_logit_151", 3.0), ("n1_logit_12", 3.000282)])
def test_g1_05_exp_does_not_overflow(
    any_bench: Bench, loaded: LoadedKernel, inputs: str, right: float
) -> None:
    """G1-05: logits of 151.29 overflow exp in fp32, logits of 12 in fp16."""
    any_bench.keep = True
    outcomes = _run(any_bench, loaded, inputs)
    for outcome in outcomes:
        assert outcome.verdict == "pass", outcome.reason
    fp32 = outcomes[0]
    assert fp32.tensor is not None
    np.testing.assert_allclose(fp32.tensor, right, atol=1e-6)


@pytest.mark.parametrize(
    ("inputs", "right"),
    [("n8_constant_500", 500.0), ("n8_constant_40", 40.0), ("n8_constant_32", 32.0), ("n8_alternating", 2.0)],
)
def test_g1_06_accumulators_do_not_overflow_or_stick(
    any_bench: Bench, loaded: LoadedKernel, inputs: str, right: float
) -> None:
    """G1-06: 500, 40, 32 and 2.0 with 32-bit sums; with fp16 sums (fp16_all) the inputs are refused."""
    any_bench.keep = True
    outcomes = _run(any_bench, loaded, inputs)
    precisions = {outcome.case.axes["precision"] for outcome in outcomes}
    assert "fp16_all" not in precisions
    assert ("fp16" in precisions) == ("float16" in any_bench.driver.features)
    for outcome in outcomes:
        assert outcome.verdict == "pass", outcome.reason
        assert outcome.tensor is not None
        np.testing.assert_allclose(outcome.tensor, right, rtol=1e-5)


@pytest.mark.parametrize("keys", [9, 16, 33, 40])
def test_g1_09_padding_of_the_last_tile_has_no_weight(
    any_bench: Bench, loaded: LoadedKernel, keys: int
) -> None:
    """G1-09: zero padding would win over logits of -50."""
    any_bench.keep = True
    api, tile = any_bench.driver.api, "32x32" if loaded.kernel.name == "attention_flash" else "16x16"
    way = sixteen_bits(api)[keys % len(sixteen_bits(api))]
    shape: Workload = {"seq": keys, "kv_seq": keys}
    cases = [
        named_case(loaded.kernel, "n7_logit_minus_50", shape, api=api, tile=tile, **p) for p in ({}, way)
    ]
    for outcome in any_bench.run(any_bench.possible(loaded, cases)):
        assert outcome.verdict == "pass", outcome.reason
        assert outcome.tensor is not None
        np.testing.assert_allclose(outcome.tensor, 7.0, rtol=0.02 if way["precision"] == "fp16_all" else 1e-5)


def test_g1_04_causal_rows_without_keys_are_exactly_zero(any_bench: Bench, loaded: LoadedKernel) -> None:
    """G1-04: rows 0 to 3 of 8 have no key."""
    any_bench.keep = True
    for outcome in _run(any_bench, loaded, "n4_rows_without_keys"):
        assert outcome.verdict == "pass", outcome.reason
        assert outcome.tensor is not None
        assert (outcome.tensor[:, :4] == 0.0).all()
        np.testing.assert_allclose(outcome.tensor[:, 4:, 0], [[1.0, 1.5, 2.0, 2.5]] * 2, rtol=1e-3)
