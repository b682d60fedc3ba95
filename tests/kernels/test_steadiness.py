"""Bits that must not change (N15 beside a poisoned row, N14 in replays), and a known driver fault."""

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.ops.attention_inputs import poisoned_row
from orchestrator.ops.attention_shape import AttentionShape
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.harness import Bench, make_case
from tests.kernels.named_inputs import named_case, sixteen_bits


@pytest.mark.parametrize("inputs", ["n15_nan_row", "n15_inf_row"])
def test_n15_one_poisoned_row_leaves_every_other_bit_alone(
    any_bench: Bench, loaded: LoadedKernel, inputs: str
) -> None:
    any_bench.keep = True
    api = any_bench.driver.api
    pairs = [
        [named_case(loaded.kernel, name, tile="16x16", api=api, **way) for name in ("normal", inputs)]
        for way in ({"precision": "fp32"}, *sixteen_bits(api))
    ]
    outcomes = any_bench.run(any_bench.possible(loaded, [case for pair in pairs for case in pair]))
    assert len(outcomes) >= 4
    for clean, poisoned in zip(outcomes[::2], outcomes[1::2], strict=True):
        assert clean.verdict == poisoned.verdict == "pass", f"{poisoned.case.label}: {poisoned.reason}"
        assert clean.tensor is not None
        assert poisoned.tensor is not None
        head, row = poisoned_row(AttentionShape.of(poisoned.case))
        assert not np.isfinite(poisoned.tensor[head, row]).any()
        poisoned.tensor[head, row] = clean.tensor[head, row]
        np.testing.assert_array_equal(poisoned.tensor, clean.tensor)


@pytest.mark.parametrize(("seq", "replays"), [(662, 30), (1500, 100)])
def test_n14_every_replay_gives_the_same_bits(
    any_bench: Bench, loaded: LoadedKernel, seq: int, replays: int
) -> None:
    if (any_bench.name, loaded.kernel.name) == ("swiftshader", "attention_naive"):
        replays //= 5  # its barriers take a fifth of a second a run
    any_bench.replays = replays
    workload: dict[str, AxisValue] = {"seq": seq, "kv_seq": 150, "head_dim": 4, "heads": 1}
    axes: dict[str, AxisValue] = {"tile": "16x16", "api": any_bench.driver.api}
    (outcome,) = any_bench.run([(loaded, make_case(loaded.kernel, workload, axes=axes))])
    assert outcome.verdict == "pass", outcome.reason
    assert list(outcome.numerics.hashes.values()) == [replays + any_bench.repeats]


def test_g1_14_a_hint_that_the_driver_ignores_changes_no_bits(any_bench: Bench, loaded: LoadedKernel) -> None:
    """G1-14: llvmpipe computes mediump in fp16; lavapipe and SwiftShader pass over RelaxedPrecision.

    The report says NO_EFFECT where the bits and the times are the same (tests/unit/analysis)."""
    workload: dict[str, AxisValue] = {"seq": 40, "head_dim": 16, "heads": 2}
    cases = [
        make_case(
            loaded.kernel,
            workload,
            axes={"api": any_bench.driver.api, "tile": "8x8", "vector": 4, "hint": hint},
        )
        for hint in ("highp", "mediump")
    ]
    highp, mediump = any_bench.run([(loaded, case) for case in cases])
    assert highp.verdict == mediump.verdict == "pass"
    assert (highp.numerics.hash == mediump.numerics.hash) == (any_bench.driver.api == "vulkan")


def test_llvmpipe_loop_limit_is_reported_as_a_mismatch(
    bench: Bench, kernels: dict[str, LoadedKernel]
) -> None:
    """llvmpipe ends all loops of an invocation after 65,535 iterations without an error.

    vector=1 keeps real loops over head_dim: 512 keys × 2 × 64 iterations are more than that, 256 keys are
    not. vector=4 has none, and is right.
    """
    flash = kernels["attention_flash"]

    def case(seq: int, vector: int) -> tuple[LoadedKernel, Case]:
        workload: dict[str, AxisValue] = {"seq": seq, "head_dim": 64, "heads": 1}
        return flash, make_case(flash.kernel, workload, axes={"vector": vector})

    within, beyond, unrolled = bench.run([case(256, 1), case(512, 1), case(512, 4)])
    assert "llvmpipe" in beyond.driver
    assert within.verdict == "pass", within.reason
    assert beyond.verdict == "mismatch"
    assert beyond.numerics.failing > 0
    assert unrolled.verdict == "pass", unrolled.reason
    assert unrolled.numerics.max_abs < 1e-6
