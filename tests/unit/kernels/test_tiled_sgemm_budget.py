"""The budget of sums by tiles: above the errors of an fp32 emulation, below that of one long sum."""

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue
from orchestrator.domain.kernel import Array
from tests.kernels.harness import all_kernels, make_case

KERNELS = all_kernels()
TILED, NAIVE = KERNELS["attention_tiled_sgemm"].kernel, KERNELS["attention_naive"].kernel
LONG: dict[str, AxisValue] = {"seq": 16, "kv_seq": 2048, "head_dim": 64, "heads": 1}


def _emulated(q: Array, k: Array, v: Array, tile: int) -> Array:
    """One head, keys of a tile one after another, every operation rounded to fp32."""
    s = (q @ k.T * np.float32(1 / np.sqrt(q.shape[1]))).astype(np.float32)
    acc, total = np.zeros_like(q), np.zeros((len(q), 1), np.float32)
    peak = np.full((len(q), 1), -np.inf, np.float32)
    for start in range(0, len(k), tile):
        block = s[:, start : start + tile]
        high = np.maximum(peak, block.max(axis=1, keepdims=True))
        factor, p = np.exp(peak - high), np.exp(block - high)
        sums, weights = np.zeros_like(acc), np.zeros_like(total)
        for j in range(p.shape[1]):
            sums += p[:, j, None] * v[start + j]
            weights += p[:, j, None]
        acc, total, peak = acc * factor + sums, total * factor + weights, high
    return acc / total


@pytest.mark.parametrize("inputs", ["normal", "n8_constant_40", "n9_rising_logits"])
@pytest.mark.parametrize("tile", [16, 64, 512])
def test_the_budget_holds_and_is_not_far_above(inputs: str, tile: int) -> None:
    shape = {**LONG, "kv_seq": 128} if inputs == "n9_rising_logits" else LONG
    case = make_case(TILED, shape, inputs=inputs, axes={"tile": tile, "block": "16x16x16"})
    arrays = TILED.inputs(case)
    tolerance = TILED.tolerance(case, arrays)["o"]
    reference = TILED.reference(case, arrays)["o"][0]
    error = np.abs(_emulated(arrays["q"][0], arrays["k"][0], arrays["v"][0], tile) - reference)
    allowed = tolerance.atol + tolerance.rtol * np.abs(reference)
    assert (error <= allowed).all()
    assert inputs != "normal" or tile != 64 or (error / allowed).max() > 0.01


def test_tiles_tighten_what_one_long_sum_would_be_allowed() -> None:
    """Most where tile and number of tiles are alike; a tile as long as the keys is one long sum."""
    bounds = {
        tile: TILED.tolerance(case, TILED.inputs(case))["o"].atol
        for tile in (16, 64, 512)
        for case in [make_case(TILED, LONG, axes={"tile": tile, "block": "16x16x16"})]
    }
    plain = make_case(NAIVE, LONG)
    long_sum = NAIVE.tolerance(plain, NAIVE.inputs(plain))["o"].atol
    assert bounds[64] < bounds[16] < bounds[512] < long_sum
    assert bounds[64] < 0.5 * long_sum
