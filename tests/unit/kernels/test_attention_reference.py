"""The float64 reference gives the right answers of docs/numerics.md, and agrees with a plain loop."""

import math

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue
from orchestrator.domain.kernel import Reference
from orchestrator.ops import attention_inputs
from orchestrator.ops.attention import attention_reference
from orchestrator.ops.attention_shape import AttentionShape
from tests.kernels.harness import all_kernels, make_case
from tests.kernels.named_inputs import named_case

FLASH = all_kernels()["attention_flash"].kernel
VULKAN: dict[str, AxisValue] = {"api": "vulkan"}


def _reference(inputs: str, precision: str = "fp32", **workload: AxisValue) -> Reference:
    case = named_case(FLASH, inputs, workload, precision=precision)
    assert FLASH.invalid(case) is None
    return FLASH.reference(case, FLASH.inputs(case))["o"]


@pytest.mark.parametrize(
    ("inputs", "right", "digits"),
    [
        ("n1_logit_151", 3.0, 6),
        ("n1_logit_12", 3.000282, 6),
        ("n3_logit_minus_60000", 3.0, 9),
        ("n3_logit_minus_20000", 3.0, 9),
        ("n5_first_tile_masked", 47.5, 9),
        ("n7_logit_minus_50", 7.0, 9),
        ("n8_constant_500", 500.0, 9),
        ("n8_constant_40", 40.0, 9),
        ("n8_constant_32", 32.0, 9),
        ("n8_alternating", 2.0, 9),
        ("n9_rising_logits", 126.418, 3),
        ("n9_last_logit_30", 127.0, 6),
        ("n10_faint_majority", 0.064015, 6),
        ("beyond_half", 131072.0, 6),
    ],
)
def test_right_answers(inputs: str, right: float, digits: int) -> None:
    np.testing.assert_allclose(_reference(inputs), right, atol=0.6 * 10.0**-digits)


def test_n2_is_the_mean_of_v_although_the_dot_product_is_73728() -> None:
    case = named_case(FLASH, "n2_dot_73728", {"head_dim": 128})
    tensors = FLASH.inputs(case)
    assert (tensors["q"] == 24.0).all()
    q, k = tensors["q"].astype(np.float64), tensors["k"].astype(np.float64)
    assert (q[0] @ k[0].T == 73728.0).all()
    expected = np.broadcast_to(tensors["v"].mean(axis=1, keepdims=True, dtype=np.float64), q.shape)
    np.testing.assert_allclose(FLASH.reference(case, tensors)["o"], expected)


def test_n4_rows_without_keys_are_exactly_zero() -> None:
    o = _reference("n4_rows_without_keys")
    assert (o[:, :4] == 0.0).all()
    np.testing.assert_allclose(o[0, 4:, 0], [1.0, 1.5, 2.0, 2.5])


def test_n6_both_heads_are_v() -> None:
    o = _reference("n6_one_key")
    assert o.shape == (2, 8, 5)
    np.testing.assert_array_equal(o, np.broadcast_to(np.arange(1.0, 6.0), o.shape))


def test_n3_at_head_dim_64_is_the_published_one() -> None:
    case = named_case(FLASH, "n3_logit_minus_60000", {"head_dim": 64})
    tensors = FLASH.inputs(case)
    assert tensors["q"][0, 0, 0] == -600.0
    assert tensors["k"][0, 0, 0] == 800.0


@pytest.mark.parametrize("inputs", ["n15_nan_row", "n15_inf_row"])
def test_n15_only_the_poisoned_row_is_not_finite(inputs: str) -> None:
    o = _reference(inputs)
    head, row = attention_inputs.poisoned_row(AttentionShape.of(named_case(FLASH, inputs)))
    poisoned = {(int(h), int(r)) for h, r, _ in np.argwhere(~np.isfinite(o))}
    assert poisoned == {(head, row)}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("seq", "kv_seq"), [(1, 7), (7, 7), (5, 9), (9, 5)])
def test_agrees_with_a_plain_loop(causal: bool, seq: int, kv_seq: int) -> None:
    shape = AttentionShape(seq=seq, kv_seq=kv_seq, head_dim=3, heads=4, kv_heads=2, causal=causal)
    q, k, v = (t.astype(np.float32) for t in attention_inputs.build("normal", shape, 7))
    expected = np.zeros(q.shape)
    for head in range(4):
        keys, values = k[head // 2].tolist(), v[head // 2].tolist()
        for row in range(seq):
            seen = [j for j in range(kv_seq) if not causal or j <= row + kv_seq - seq]
            query = q[head, row].tolist()
            logits = [
                shape.scale * math.fsum(a * b for a, b in zip(query, keys[j], strict=True)) for j in seen
            ]
            weights = [math.exp(s - max(logits)) for s in logits]
            for d in range(3):
                total = math.fsum(w * values[j][d] for w, j in zip(weights, seen, strict=True))
                expected[head, row, d] = total / math.fsum(weights) if seen else 0.0
    np.testing.assert_allclose(attention_reference(q, k, v, shape), expected, rtol=1e-13, atol=1e-15)


def test_inputs_are_rounded_to_the_storage_type_before_the_reference() -> None:
    workload: dict[str, AxisValue] = {"seq": 4, "head_dim": 8, "heads": 1}
    half, single = (make_case(FLASH, workload, axes={"precision": p}) for p in ("fp16_storage", "fp32"))
    assert FLASH.inputs(half)["q"].dtype == np.float16
    assert FLASH.data_key(half) != FLASH.data_key(single)
    np.testing.assert_array_equal(FLASH.inputs(half)["q"], FLASH.inputs(single)["q"].astype(np.float16))


def test_data_key_ignores_the_variant_and_resolves_words() -> None:
    workload: dict[str, AxisValue] = {"seq": 4, "head_dim": 8, "heads": 2}
    case = make_case(FLASH, workload)
    spelled = make_case(FLASH, workload, axes={"tile": "8x8", "vector": 1, "layout": "column"})
    spelled.workload["kv_seq"] = "seq"
    spelled.workload["kv_heads"] = "heads"
    assert FLASH.data_key(case) == FLASH.data_key(spelled)
    assert FLASH.data_key(case) != FLASH.data_key(make_case(FLASH, workload, seed=2))


@pytest.mark.parametrize(
    ("inputs", "workload", "axes", "why"),
    [
        ("normal", {"heads": 3, "kv_heads": 2}, {}, "kv_heads 2 does not divide heads 3"),
        ("n1_logit_151", {"kv_seq": 5}, {}, "inputs n1_logit_151: kv_seq 5 is not 4"),
        ("n4_rows_without_keys", {"causal": False}, {}, "causal is false"),
        ("n4_rows_without_keys", {"seq": 4}, {}, "kv_seq 4 is not below seq 4"),
        ("n5_first_tile_masked", {"kv_seq": 63}, {}, "kv_seq 63 is odd"),
        ("beyond_half", {}, {"precision": "fp16_storage"}, "131072 > 65504, the largest fp16"),
        ("n3_logit_minus_60000", {}, {"hint": "mediump"}, "60000 > 16384, what mediump guarantees"),
        ("n15_nan_row", {}, {"hint": "mediump"}, "inf > 16384, what mediump guarantees"),
        ("normal", {}, {"precision": "fp16"}, "precision fp16 needs api vulkan; on GLES use hint mediump"),
        ("normal", {}, {"precision": "fp16_all"}, "precision fp16_all needs api vulkan"),
        ("normal", {}, {**VULKAN, "precision": "fp16", "hint": "mediump"}, "fp16 has 16 bits already"),
        ("normal", {}, {"precision": "fp16_storage", "halves": "native"}, "halves native needs api vulkan"),
        ("normal", {}, {**VULKAN, "halves": "native"}, "halves native needs a 16-bit precision"),
        ("normal", {}, {"hint": "precise"}, "hint precise needs api vulkan"),
        ("n10_faint_majority", {}, {**VULKAN, "precision": "fp16"}, "e^-11 < 2^-14 are fp16 subnormals"),
        ("n8_constant_500", {}, {**VULKAN, "precision": "fp16_all"}, "the sum 128000 > 65504"),
        ("n8_constant_40", {}, {**VULKAN, "precision": "fp16_all"}, "the sum 81920 > 65504"),
        ("n8_constant_32", {}, {**VULKAN, "precision": "fp16_all"}, "the sum 131072 > 65504"),
        ("n8_alternating", {}, {**VULKAN, "precision": "fp16_all"}, "1 added to 2048 is lost in fp16"),
    ],
)
def test_refused_cases_have_a_named_reason(
    inputs: str, workload: dict[str, AxisValue], axes: dict[str, AxisValue], why: str
) -> None:
    case = named_case(FLASH, inputs, workload, **axes)
    assert why in (FLASH.invalid(case) or "")


@pytest.mark.parametrize("inputs", ["n8_constant_500", "n8_constant_40", "n8_constant_32", "n8_alternating"])
def test_g1_06_only_fp16_accumulators_are_refused(inputs: str) -> None:
    """G1-06: fp16 products with 32-bit sums must give 500, 40, 32 and 2.0; only fp16_all may not be asked."""
    assert FLASH.invalid(named_case(FLASH, inputs, api="vulkan", precision="fp16")) is None


def test_an_unknown_distribution_is_refused() -> None:
    case = make_case(FLASH, {"seq": 4, "head_dim": 8, "heads": 2}, inputs="n99")
    assert (FLASH.invalid(case) or "").startswith("inputs n99 are not defined for attention; known: normal,")
