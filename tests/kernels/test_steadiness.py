"""Bits that must not change (N15 beside a poisoned row, N14 in replays), and a known driver fault."""

import numpy as np

from orchestrator.domain.case import AxisValue, Case
from orchestrator.ops.attention_inputs import poisoned_row
from orchestrator.ops.attention_shape import AttentionShape
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.harness import Bench, make_case
from tests.kernels.named_inputs import named_case

FLASH = "attention_flash"
POISONS = ("n15_nan_row", "n15_inf_row")
WAYS: dict[str, tuple[dict[str, AxisValue], ...]] = {
    "attention_naive": (
        {"precision": "fp16_storage"},
        {"precision": "fp16", "halves": "native"},
        {"precision": "fp16_all"},
    ),
    FLASH: (
        {"precision": "fp16_storage", "halves": "native"},
        {"precision": "fp16"},
        {"precision": "fp16_all", "halves": "native"},
    ),
}
"""Each precision of 16 bits once a kernel, native or packed in turn, on lavapipe; others: packed storage."""


def test_n15_one_poisoned_row_leaves_every_other_bit_alone(any_bench: Bench, loaded: LoadedKernel) -> None:
    any_bench.keep, any_bench.repeats = True, 0
    every = any_bench.name == "lavapipe"
    ways = ({"precision": "fp32"}, *(WAYS[loaded.kernel.name] if every else ({"precision": "fp16_storage"},)))
    cases = [
        named_case(loaded.kernel, name, api=any_bench.driver.api, **way)
        for way in ways
        for name in ("normal", *POISONS)
    ]
    outcomes = any_bench.passing([(loaded, case) for case in cases])
    for n, poisoned in enumerate(outcomes):
        if poisoned.case.inputs == "normal":
            continue
        clean = outcomes[n - n % 3]
        head, row = poisoned_row(AttentionShape.of(poisoned.case))
        assert not np.isfinite(poisoned.values[head, row]).any()
        others = np.ones(clean.values.shape, dtype=bool)
        others[head, row] = False
        np.testing.assert_array_equal(poisoned.values[others], clean.values[others])


def test_n14_every_replay_gives_the_same_bits(any_bench: Bench, loaded: LoadedKernel) -> None:
    """662 rows 30 times; 1,500 rows 100 times where that takes the least: on llvmpipe, and flash on
    SwiftShader. There naive, whose barriers take a fifth of a second a run, has a fifth of the replays."""
    on = (any_bench.name, loaded.kernel.name)
    sizes = [(662, 6 if on == ("swiftshader", "attention_naive") else 30)]
    if any_bench.name == "llvmpipe" or on == ("swiftshader", FLASH):
        sizes.append((1500, 100))
    axes: dict[str, AxisValue] = {"tile": "16x16", "api": any_bench.driver.api}
    for seq, replays in sizes:
        any_bench.replays = replays
        workload: dict[str, AxisValue] = {"seq": seq, "kv_seq": 70, "head_dim": 4, "heads": 1}
        (outcome,) = any_bench.passing([(loaded, make_case(loaded.kernel, workload, axes=axes))])
        assert list(outcome.numerics.hashes.values()) == [replays + any_bench.repeats]


def test_g1_14_a_hint_that_the_driver_ignores_changes_no_bits(any_bench: Bench, loaded: LoadedKernel) -> None:
    """G1-14: llvmpipe computes mediump in fp16; lavapipe and SwiftShader pass over RelaxedPrecision.

    The report says NO_EFFECT where the bits and the times are the same (tests/unit/analysis)."""
    workload: dict[str, AxisValue] = {"seq": 20, "head_dim": 8, "heads": 2}
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
    flash = kernels[FLASH]

    def case(keys: int, vector: int) -> tuple[LoadedKernel, Case]:
        workload: dict[str, AxisValue] = {"seq": 8, "kv_seq": keys, "head_dim": 64, "heads": 1}
        return flash, make_case(flash.kernel, workload, axes={"vector": vector, "tile": "8x8"})

    within, beyond, unrolled = bench.run([case(256, 1), case(512, 1), case(512, 4)])
    assert "llvmpipe" in beyond.driver
    assert within.verdict == "pass", within.reason
    assert beyond.verdict == "mismatch"
    assert beyond.numerics.failing > 0
    assert unrolled.verdict == "pass", unrolled.reason
    assert unrolled.numerics.max_abs < 1e-6
