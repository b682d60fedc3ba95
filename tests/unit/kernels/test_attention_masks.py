"""Masks, windows, alignments and caches: reference, buffers and refusals, against loops and known answers."""

import math
import re
from itertools import product

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Array, Reference
from orchestrator.ops.attention import attention_reference
from orchestrator.ops.attention_budget import Arithmetic, attention_tolerance
from orchestrator.ops.attention_mask import packed, unpacked
from orchestrator.ops.attention_shape import AttentionShape
from orchestrator.planning.kernel_folder import load_kernel
from orchestrator.planning.render import render_case
from tests.kernels.harness import KERNELS, all_kernels, make_case
from tests.kernels.named_inputs import Workload, named_case

FLASH, NAIVE = (load_kernel(KERNELS / name) for name in ("attention_flash", "attention_naive"))


def _right(inputs: str, shape: Workload | None = None, **axes: AxisValue) -> Reference:
    case = named_case(FLASH.kernel, inputs, shape, **axes)
    assert FLASH.kernel.invalid(case) is None
    return FLASH.kernel.reference(case, FLASH.kernel.inputs(case))["o"]


@pytest.mark.parametrize("mask", ["additive", "boolean"])
def test_n4_true_masks_give_0_to_rows_without_keys(mask: str) -> None:
    o = _right("n4_mask_inf", {"mask": mask})
    assert (o[:, :4] == 0.0).all()
    np.testing.assert_allclose(o[0, 4:, 0], [1.0, 1.5, 2.0, 2.5])


@pytest.mark.parametrize(
    ("inputs", "precision"),
    [("n4_mask_65504", "fp32"), ("n4_mask_65504", "fp16_storage"), ("n4_mask_1e9", "fp32")],
)
def test_n4_a_finite_mask_over_all_keys_gives_the_mean_of_v(inputs: str, precision: str) -> None:
    o = _right(inputs, precision=precision)
    np.testing.assert_allclose(o[0, :, 0], [2.5] * 4 + [1.0, 1.5, 2.0, 2.5])


@pytest.mark.parametrize("mask", ["additive", "boolean"])
def test_g1_04_causality_and_a_mask_together_leave_row_0_no_key(mask: str) -> None:
    """G1-04: row 0 sees key 0 alone, which the mask hides; the others see keys 1 … row."""
    o = _right("n4_causal_and_mask", {"seq": 4, "kv_seq": 4, "mask": mask})
    np.testing.assert_allclose(o[0, :, 0], [0.0, 2.0, 2.5, 3.0])
    longer = _right("n4_causal_and_mask", {"seq": 8, "kv_seq": 4, "mask": mask})
    np.testing.assert_allclose(longer[0, :, 0], [0.0] * 5 + [2.0, 2.5, 3.0])


@pytest.mark.parametrize("inputs", ["n12_score_minus_16", "n12_score_minus_15"])
def test_n12_the_lowest_half_masks_and_empties_nothing(inputs: str) -> None:
    o = _right(inputs, precision="fp16_storage")
    np.testing.assert_allclose(o[:, ::2], 1.0)
    np.testing.assert_allclose(o[:, 1::2], 2.0)


VISIBLE = tuple(
    product(
        ((5, 9), (9, 5), (7, 7)),
        ((True, 0), (False, 3), (True, 2), (True, 1)),
        ("bottom_right", "top_left"),
    )
)


def _sees(shape: AttentionShape, row: int, key: int) -> bool:
    at = row + (shape.kv_seq - shape.seq if shape.align == "bottom_right" else 0)
    if shape.causal and key > at:
        return False
    return not shape.window or (key > at - shape.window and (shape.causal or key < at + shape.window))


@pytest.mark.parametrize(("sizes", "hides", "align"), VISIBLE)
@pytest.mark.parametrize("mask", ["none", "additive", "boolean"])
def test_agrees_with_a_plain_loop(
    sizes: tuple[int, int], hides: tuple[bool, int], align: str, mask: str
) -> None:
    workload: dict[str, AxisValue] = {"seq": sizes[0], "kv_seq": sizes[1], "head_dim": 3, "heads": 2}
    workload |= {"kv_heads": 1, "causal": hides[0], "window": hides[1], "align": align, "mask": mask}
    case = make_case(FLASH.kernel, {**workload, "kv_rows": 11, "kv_order": "row"}, seed=3)
    data, shape = FLASH.kernel.inputs(case), AttentionShape.of(case)
    assert np.isnan(data["k"][shape.kv_seq :]).all()
    assert np.isfinite(data["v"][: shape.kv_seq]).all()
    expected = np.zeros(data["q"].shape)
    for head, row in np.ndindex(2, shape.seq):
        logits: dict[int, float] = {}
        for key in range(shape.kv_seq):
            terms = zip(data["q"][head, row].tolist(), data["k"][key, 0].tolist(), strict=True)
            added = float(data["mask"][row, key]) if mask == "additive" else 0.0
            shown = mask != "boolean" or int(data["mask"][row, 0]) >> key & 1
            if _sees(shape, row, key) and shown and added > -math.inf:
                logits[key] = shape.scale * math.fsum(a * b for a, b in terms) + added
        weights = {key: math.exp(s - max(logits.values())) for key, s in logits.items()}
        for d in range(3):
            total = math.fsum(w * float(data["v"][key, 0, d]) for key, w in weights.items())
            expected[head, row, d] = total / math.fsum(weights.values()) if weights else 0.0
    np.testing.assert_allclose(FLASH.kernel.reference(case, data)["o"], expected, rtol=1e-12, atol=1e-15)
    rows = range(shape.seq)
    assert [shape.visible(i) - shape.first(i) for i in rows] == [
        sum(_sees(shape, i, j) for j in range(shape.kv_seq)) for i in rows
    ]


def test_bits_lie_from_the_lowest_and_are_1_past_the_last_key() -> None:
    shown = np.zeros((2, 40), bool)
    shown[0, [0, 33]] = shown[1, 31] = True
    words = packed(shown)
    assert words.tolist() == [[1, 0xFFFFFF02], [0x80000000, 0xFFFFFF00]]
    np.testing.assert_array_equal(unpacked(words, 40), shown)


def test_a_hidden_nan_is_hidden() -> None:
    shape = AttentionShape(1, 2, 1, heads=1, kv_heads=1, causal=False, mask="boolean")
    q, k = np.ones((1, 1, 1)), np.array([[[1.0], [np.nan]]])
    only_first = packed(np.array([[True, False]]))
    assert attention_reference(q, k, np.array([[[5.0], [6.0]]]), shape, only_first).item() == 5.0


@pytest.mark.parametrize("order", ["head", "row"])
def test_n13_a_cache_holds_the_compact_tensors_and_nan(order: str) -> None:
    shape = AttentionShape(1, 37, 8, 3, 3, causal=False, kv_rows=5120, kv_order=order)
    compact = np.arange(3.0 * 37 * 8).reshape(3, 37, 8)
    stored = shape.stored(compact)
    assert stored.size == shape.kv_count == 3 * 5120 * 8
    assert stored.shape[:2] == ((3, 5120) if order == "head" else (5120, 3))
    assert np.isnan(stored).sum() == 3 * (5120 - 37) * 8
    np.testing.assert_array_equal(shape.compact(stored), compact)


BASE: Workload = {"seq": 4, "head_dim": 8, "heads": 2}


@pytest.mark.parametrize(
    ("workload", "why"),
    [
        ({"align": "top_left"}, "align top_left needs causal or a window: nothing else has a diagonal"),
        ({"kv_rows": 3}, "kv_rows 3 < kv_seq 4: every key needs a row"),
    ],
)
def test_shapes_that_make_no_sense_are_refused(workload: Workload, why: str) -> None:
    assert FLASH.kernel.invalid(make_case(FLASH.kernel, {**BASE, **workload})) == why


@pytest.mark.parametrize(
    ("inputs", "shape", "axes", "why"),
    [
        ("n4_mask_1e9", {}, {"precision": "fp16_storage"}, "magnitude 1e+09 > 65504, the largest fp16"),
        ("n4_mask_65504", {"mask": "boolean"}, {}, "mask boolean is not additive"),
        ("n4_mask_inf", {"mask": "none"}, {}, "mask none is not additive or boolean"),
        ("n4_mask_inf", {"causal": True}, {}, "causality or a window hides keys beside the mask"),
        ("n4_causal_and_mask", {"causal": False}, {}, "causal is false: every row has keys"),
        ("n4_causal_and_mask", {"mask": "none"}, {}, "mask none hides no key"),
        ("n12_score_minus_16", {"kv_seq": 5}, {}, "kv_seq 5 is odd: half of the keys are masked"),
    ],
)
def test_masks_that_do_not_exist_have_a_named_reason(
    inputs: str, shape: Workload, axes: dict[str, AxisValue], why: str
) -> None:
    case = named_case(FLASH.kernel, inputs, shape, **axes)
    assert FLASH.kernel.invalid(case) == f"inputs {inputs}: {why}"


def test_mediump_may_meet_the_lowest_half_because_masks_are_added_in_fp32() -> None:
    assert FLASH.kernel.invalid(named_case(FLASH.kernel, "n4_mask_65504", hint="mediump")) is None


def test_a_kernel_names_what_it_has_not_learnt() -> None:
    asked: Workload = {"causal": True, "align": "top_left", "window": 2, "mask": "boolean"}
    asked |= {"kv_rows": 9, "kv_order": "row"}
    learnt = {"causal"}
    for loaded in all_kernels().values():
        kernel = loaded.kernel
        for name, value in asked.items():
            case = make_case(kernel, {**BASE, "causal": True, name: value})
            refused = kernel.invalid(case) or ""
            assert refused == "" or refused.startswith(f"{kernel.name} cannot do {name} {value}; of align, ")
            learnt |= {f"{kernel.name} {name}"} if not refused else set()
    both = {f"{k} {name}" for k in ("attention_naive", "attention_flash") for name in asked}
    assert both <= learnt


def test_every_new_parameter_is_part_of_the_data() -> None:
    causal: Workload = {**BASE, "causal": True}
    others: tuple[Workload, ...] = (
        {"align": "top_left"}, {"window": 2}, {"mask": "additive"}, {"kv_rows": 9}, {"kv_order": "row"},
    )  # fmt: skip
    keys = {FLASH.kernel.data_key(make_case(FLASH.kernel, {**causal, **other})) for other in ({}, *others)}
    assert len(keys) == 6


PLAIN = Arithmetic(half_output=False, mediump=False, online=True)


def _fp32(q: Array, k: Array, v: Array, added: Array, scale: float) -> Array:
    """One head, keys one after another, every operation rounded to fp32."""
    s = np.zeros((q.shape[1], k.shape[1]), np.float32)
    for d in range(q.shape[2]):
        s += q[0, :, d, None] * k[0, None, :, d]
    s = s * np.float32(scale) + added
    p = np.exp(s - s.max(axis=1, keepdims=True))
    o, total = np.zeros(q.shape, np.float32), np.zeros((q.shape[1], 1), np.float32)
    for j in range(k.shape[1]):
        total += p[:, j, None]
        o[0] += p[:, j, None] * v[0, j]
    o[0] /= total
    return o


@pytest.mark.parametrize(("size", "ratio"), [(1.0, 0.01), (1000.0, 0.01), (65504.0, 0.05)])
def test_the_budget_holds_for_masks_of_any_size(size: float, ratio: float) -> None:
    """And is at most a hundred times the error: at 65504 a logit is rounded to 2^-8."""
    rng = np.random.default_rng(5)
    shape = AttentionShape(64, 64, 32, heads=1, kv_heads=1, causal=False, mask="additive")
    q, k, v = (rng.standard_normal((1, 64, 32)).astype(np.float32) for _ in range(3))
    added = np.full((64, 64), -size, np.float32)
    if size < 65504:
        added *= rng.random((64, 64)).astype(np.float32)
    tolerance = attention_tolerance(q, k, v, shape, PLAIN, added)
    ref = attention_reference(q, k, v, shape, added)
    got = _fp32(q, k, v, added, shape.scale)
    worst = float((np.abs(got - ref) / (tolerance.atol + tolerance.rtol * np.abs(ref))).max())
    assert ratio < worst < 1.0


def test_a_mask_that_is_equal_for_equal_keys_costs_nothing() -> None:
    """n4, n12: all visible logits of a row are equal before and after the mask."""
    for inputs in ("n4_mask_65504", "n4_mask_1e9", "n12_score_minus_16"):
        case = named_case(FLASH.kernel, inputs)
        assert FLASH.kernel.tolerance(case, FLASH.kernel.inputs(case))["o"].atol < 1e-5


SIZES = {"float": 4, "vec4": 16, "uint": 4, "uvec2": 8, "float16_t": 2, "f16vec2": 4, "f16vec4": 8}


@pytest.mark.parametrize("pad", [0, 1])
@pytest.mark.parametrize("layout", ["row", "column"])
@pytest.mark.parametrize("precision", ["fp32", "fp16_storage", "fp16"])
def test_shared_bytes_are_what_the_shader_declares(precision: str, layout: str, pad: int) -> None:
    cases: list[Case] = []
    for loaded, vector, rows in ((NAIVE, 1, 1), (NAIVE, 4, 1), (FLASH, 1, 1), (FLASH, 4, 1), (FLASH, 4, 4)):
        axes: dict[str, AxisValue] = {"api": "vulkan", "precision": precision, "layout": layout, "pad": pad}
        axes |= {"vector": vector, "tile": "16x16"}
        if loaded is FLASH:
            axes["rows"] = rows
        if rows == 1 or layout == "row":
            cases.append(make_case(loaded.kernel, {"seq": 40, "head_dim": 21, "heads": 1}, axes=axes))
    for case in cases:
        for step in render_case(NAIVE if case.kernel == "attention_naive" else FLASH, case).passes:
            defined = dict(re.findall(r"#define (\w+) (\w+)", step.glsl))
            found = re.findall(r"^shared (?:(?:LOW|highp) )?(\w+) \w+\[(\d+)\];", step.glsl, re.M)
            declared = sum(SIZES[defined.get(kind, kind)] * int(count) for kind, count in found)
            assert declared == step.shared_bytes, f"{case.label} {step.template}"
