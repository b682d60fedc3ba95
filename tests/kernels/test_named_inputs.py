"""Every named input distribution passes on this driver in the variants where it exists (N1–N10, N15)."""

import numpy as np
import pytest

from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.harness import Bench, Outcome
from tests.kernels.named_inputs import WORKLOADS, named_case, variants


def _assert_passes(outcomes: list[Outcome]) -> None:
    wrong = [f"{o.case.label}: {o.verdict} {o.reason} {o.end.log}" for o in outcomes if o.verdict != "pass"]
    assert not wrong, "\n".join(wrong)


def _run(bench: Bench, loaded: LoadedKernel, inputs: str, **axes: str | int) -> list[Outcome]:
    cases = [named_case(loaded.kernel, inputs, precision=p, **axes) for p in ("fp32", "fp16_storage")]
    return bench.run([(loaded, c) for c in cases if loaded.kernel.invalid(c) is None])


@pytest.mark.parametrize("inputs", WORKLOADS)
def test_named_inputs_pass(bench: Bench, loaded: LoadedKernel, inputs: str) -> None:
    number = list(WORKLOADS).index(inputs)
    cases = [named_case(loaded.kernel, inputs, **axes) for axes in variants(loaded.kernel, number)]
    possible = [c for c in cases if loaded.kernel.invalid(c) is None]
    assert possible
    _assert_passes(bench.run([(loaded, c) for c in possible]))


def test_every_distribution_has_a_shape(loaded: LoadedKernel) -> None:
    assert set(WORKLOADS) == set(loaded.kernel.distributions)


@pytest.mark.parametrize(
    ("inputs", "right"),
    [("n3_logit_minus_60000", 3.0), ("n3_logit_minus_20000", 3.0), ("n5_first_tile_masked", 47.5)],
)
def test_g1_03_no_finite_minus_infinity_and_no_nan_in_the_rescale(
    bench: Bench, loaded: LoadedKernel, inputs: str, right: float
) -> None:
    bench.keep = True
    for outcome in _run(bench, loaded, inputs, tile="32x32"):
        assert outcome.verdict == "pass", outcome.reason
        assert outcome.tensor is not None
        np.testing.assert_allclose(outcome.tensor, right, rtol=1e-3)


@pytest.mark.parametrize(("inputs", "right"), [("n1_logit_151", 3.0), ("n1_logit_12", 3.000282)])
def test_g1_05_exp_does_not_overflow(bench: Bench, loaded: LoadedKernel, inputs: str, right: float) -> None:
    bench.keep = True
    fp32, half = _run(bench, loaded, inputs)
    for outcome in (fp32, half):
        assert outcome.verdict == "pass", outcome.reason
    assert fp32.tensor is not None
    np.testing.assert_allclose(fp32.tensor, right, atol=1e-6)


@pytest.mark.parametrize(
    ("inputs", "right"),
    [("n8_constant_500", 500.0), ("n8_constant_40", 40.0), ("n8_constant_32", 32.0), ("n8_alternating", 2.0)],
)
def test_g1_06_accumulators_do_not_overflow_or_stick(
    bench: Bench, loaded: LoadedKernel, inputs: str, right: float
) -> None:
    bench.keep = True
    for outcome in _run(bench, loaded, inputs):
        assert outcome.verdict == "pass", outcome.reason
        assert outcome.tensor is not None
        np.testing.assert_allclose(outcome.tensor, right, rtol=1e-5)


@pytest.mark.parametrize("keys", [9, 16, 33, 40])
def test_g1_09_padding_of_the_last_tile_has_no_weight(bench: Bench, loaded: LoadedKernel, keys: int) -> None:
    bench.keep = True
    case = named_case(loaded.kernel, "n7_logit_minus_50", tile="32x32")
    case.workload["seq"] = case.workload["kv_seq"] = keys
    (outcome,) = bench.run([(loaded, case)])
    assert outcome.verdict == "pass", outcome.reason
    assert outcome.tensor is not None
    np.testing.assert_allclose(outcome.tensor, 7.0, rtol=1e-5)


def test_g1_04_causal_rows_without_keys_are_exactly_zero(bench: Bench, loaded: LoadedKernel) -> None:
    bench.keep = True
    for outcome in _run(bench, loaded, "n4_rows_without_keys"):
        assert outcome.verdict == "pass", outcome.reason
        assert outcome.tensor is not None
        assert (outcome.tensor[:, :4] == 0.0).all()
        np.testing.assert_allclose(outcome.tensor[:, 4:, 0], [[1.0, 1.5, 2.0, 2.5]] * 2, rtol=1e-3)
