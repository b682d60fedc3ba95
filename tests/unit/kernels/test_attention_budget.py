"""The error budget holds for an fp32 emulation, is not far above it, and grows for the right reasons."""

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue
from orchestrator.domain.kernel import Array, Tolerance
from orchestrator.ops import attention_inputs
from orchestrator.ops.attention import attention_reference
from orchestrator.ops.attention_budget import Arithmetic, attention_tolerance
from orchestrator.ops.attention_shape import AttentionShape
from tests.kernels.harness import all_kernels, make_case

KERNELS = all_kernels()
PLAIN = Arithmetic(half_output=False, mediump=False, online=True)


def _shape(seq: int, head_dim: int = 64, *, kv_seq: int | None = None) -> AttentionShape:
    return AttentionShape(seq, kv_seq or seq, head_dim, heads=2, kv_heads=2, causal=False)


def _data(shape: AttentionShape, inputs: str = "normal") -> tuple[Array, Array, Array]:
    q, k, v = attention_inputs.build(inputs, shape, 1)
    return q.astype(np.float32), k.astype(np.float32), v.astype(np.float32)


def _fp32(q: Array, k: Array, v: Array, shape: AttentionShape) -> Array:
    """Keys one after another, every operation rounded to fp32."""
    o = np.zeros_like(q)
    for head in range(shape.heads):
        s = np.zeros((shape.seq, shape.kv_seq), np.float32)
        for d in range(shape.head_dim):
            s += q[head, :, d, None] * k[head, None, :, d]
        s *= np.float32(shape.scale)
        p = np.exp(s - s.max(axis=1, keepdims=True))
        total = np.zeros((shape.seq, 1), np.float32)
        for j in range(shape.kv_seq):
            total += p[:, j, None]
            o[head] += p[:, j, None] * v[head, j]
        o[head] /= total
    return o


def _fp16(q: Array, k: Array, v: Array, shape: AttentionShape, *, half_sums: bool, flush: bool) -> Array:
    """Online softmax over tiles of 16 keys; products rounded to fp16, sums of them too where asked.

    ``flush``: a device without fp16 subnormals."""

    def half(x: Array) -> Array:
        x = x.astype(np.float16)
        return np.where(np.abs(x) < 2.0**-14, np.float16(0), x) if flush else x

    sums = np.float16 if half_sums else np.float32
    o = np.zeros(q.shape, np.float32)
    for head in range(shape.heads):
        keys, values = half(k[head]), half(v[head])
        queries = half(q[head] * np.float32(shape.scale))
        s = np.zeros((shape.seq, shape.kv_seq), sums)
        for d in range(shape.head_dim):
            s += half(queries[:, d, None] * keys[None, :, d]).astype(sums)
        m, total = np.full((shape.seq, 1), -np.inf, np.float32), np.zeros((shape.seq, 1), np.float32)
        acc = np.zeros((shape.seq, shape.head_dim), sums)
        for tile in range(0, shape.kv_seq, 16):
            logits = s[:, tile : tile + 16].astype(np.float32)
            highest = np.maximum(m, logits.max(axis=1, keepdims=True))
            correction = np.exp(m - highest)
            total, acc, m = total * correction, acc * correction.astype(sums), highest
            for j in range(logits.shape[1]):
                p = half(np.exp(logits[:, j : j + 1] - m))
                total += p.astype(np.float32)
                acc += half(p * values[tile + j]).astype(sums)
        o[head] = acc.astype(np.float32) / total
    return o.astype(np.float16).astype(np.float64)


def _worst_ratio(tolerance: Tolerance, got: Array, ref: Array) -> float:
    """Largest error as a share of what its element is allowed."""
    return float((np.abs(got - ref) / (tolerance.atol + tolerance.rtol * np.abs(ref))).max())


@pytest.mark.parametrize(("seq", "head_dim"), [(16, 8), (128, 64), (512, 64), (256, 128)])
def test_the_budget_holds_and_is_at_most_a_hundred_times_the_error(seq: int, head_dim: int) -> None:
    shape = _shape(seq, head_dim)
    q, k, v = _data(shape)
    tolerance = attention_tolerance(q, k, v, shape, PLAIN)
    got, ref = _fp32(q, k, v, shape), attention_reference(q, k, v, shape)
    assert 0.01 < _worst_ratio(tolerance, got, ref) < 1.0
    nmse = float(((got - ref) ** 2).sum() / (ref**2).sum())
    assert 0.0 < nmse < tolerance.nmse < 1e-7


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("half_sums", [False, True])
@pytest.mark.parametrize(("seq", "kv_seq", "head_dim"), [(16, 16, 8), (128, 128, 64), (16, 2048, 64)])
def test_fp16_budgets_hold_for_an_emulation_and_are_at_most_a_hundred_times_its_error(
    seq: int, kv_seq: int, head_dim: int, half_sums: bool, flush: bool
) -> None:
    shape = _shape(seq, head_dim, kv_seq=kv_seq)
    q, k, v = (t.astype(np.float16) for t in attention_inputs.build("normal", shape, 1))
    arithmetic = Arithmetic(True, False, True, half_products=True, half_sums=half_sums)
    tolerance = attention_tolerance(q, k, v, shape, arithmetic)
    got, ref = _fp16(q, k, v, shape, half_sums=half_sums, flush=flush), attention_reference(q, k, v, shape)
    assert 0.01 < _worst_ratio(tolerance, got, ref) < 1.0
    assert tolerance.nmse < (0.2 if half_sums else 1e-3)


def test_fp16_products_are_allowed_less_than_fp16_sums_need() -> None:
    """A kernel that promises 32-bit sums and keeps 16-bit ones is caught on ordinary data, too."""
    shape = _shape(16, 64, kv_seq=2048)
    q, k, v = (t.astype(np.float16) for t in attention_inputs.build("normal", shape, 1))
    promised = Arithmetic(True, False, True, half_products=True)
    tolerance = attention_tolerance(q, k, v, shape, promised)
    got = _fp16(q, k, v, shape, half_sums=True, flush=False)
    assert _worst_ratio(tolerance, got, attention_reference(q, k, v, shape)) > 1.0


@pytest.mark.parametrize("inputs", ["n10_faint_majority", "n8_alternating"])
def test_equal_terms_that_round_alike_stay_inside(inputs: str) -> None:
    """4095 additions of one number to a larger one err in one direction: not a random walk."""
    shape = _shape(3, 8, kv_seq=4096)
    q, k, v = _data(shape, inputs)
    tolerance = attention_tolerance(q, k, v, shape, PLAIN)
    assert _worst_ratio(tolerance, _fp32(q, k, v, shape), attention_reference(q, k, v, shape)) < 0.5


def test_zeros_never_pass() -> None:
    shape = _shape(512)
    q, k, v = _data(shape)
    tolerance = attention_tolerance(q, k, v, shape, PLAIN)
    ref = attention_reference(q, k, v, shape)
    assert _worst_ratio(tolerance, np.zeros_like(ref), ref) > 1.0
    assert tolerance.nmse < 1.0


def test_larger_inputs_are_allowed_larger_errors() -> None:
    shape = _shape(64)
    q, k, v = _data(shape)
    plain = attention_tolerance(q, k, v, shape, PLAIN)
    assert attention_tolerance(q, k, 100 * v, shape, PLAIN).atol == pytest.approx(100 * plain.atol, rel=0.02)
    assert attention_tolerance(4 * q, k, v, shape, PLAIN).atol > 2 * plain.atol


def test_equal_keys_cancel_the_error_of_their_logits() -> None:
    """Identical keys have identical logits, whatever their size (n2, n3)."""
    shape = _shape(4, 64, kv_seq=4)
    q, k, v = _data(shape, "n3_logit_minus_60000")
    assert attention_tolerance(q, k, v, shape, PLAIN).atol < 1e-5


@pytest.mark.parametrize(
    ("wider", "field", "at_least"),
    [
        (Arithmetic(half_output=True, mediump=False, online=True), "rtol", 2.0**-10),
        (Arithmetic(half_output=False, mediump=True, online=True), "atol", 1e-3),
        (Arithmetic(half_output=True, mediump=False, online=True, half_products=True), "atol", 1e-3),
        (Arithmetic(True, False, True, half_products=True, half_sums=True), "atol", 1e-2),
        (Arithmetic(True, False, True, half_weights=True), "atol", 5e-4),
    ],
)
def test_lower_precision_widens_the_budget(wider: Arithmetic, field: str, at_least: float) -> None:
    shape = _shape(64)
    q, k, v = _data(shape)
    narrow = getattr(attention_tolerance(q, k, v, shape, PLAIN), field)
    wide = getattr(attention_tolerance(q, k, v, shape, wider), field)
    assert narrow < at_least <= wide


def test_rounded_weights_cost_less_than_rounded_products() -> None:
    """And nothing where all values are equal: a weight counts the same in o and in l."""
    shape = _shape(64)
    q, k, v = _data(shape)
    weights = Arithmetic(half_output=True, mediump=False, online=True, half_weights=True)
    products = Arithmetic(half_output=True, mediump=False, online=True, half_products=True)
    allowed = [attention_tolerance(q, k, v, shape, a).atol for a in (PLAIN, weights, products)]
    assert allowed == sorted(allowed)
    assert allowed[1] < allowed[2] / 2
    same = np.ones_like(v)
    plain = attention_tolerance(q, k, same, shape, PLAIN).atol
    assert attention_tolerance(q, k, same, shape, weights).atol < plain + 1e-6


def test_online_softmax_pays_for_its_rescales() -> None:
    shape = _shape(128)
    q, k, v = _data(shape)
    once = Arithmetic(half_output=False, mediump=False, online=False)
    assert attention_tolerance(q, k, v, shape, once).atol < attention_tolerance(q, k, v, shape, PLAIN).atol


@pytest.mark.parametrize("inputs", ["n15_nan_row", "n15_inf_row", "n5_first_tile_masked"])
def test_inputs_that_are_not_finite_have_finite_budgets(inputs: str) -> None:
    shape = _shape(8, 8, kv_seq=64)
    q, k, v = _data(shape, inputs)
    tolerance = attention_tolerance(q, k, v, shape, PLAIN)
    assert 0.0 < tolerance.atol < 1e-2
    assert 0.0 < tolerance.nmse < 1e-4


def test_variants_of_a_workload_share_tolerances_unless_their_arithmetic_differs() -> None:
    kernel = KERNELS["attention_flash"].kernel
    workload: dict[str, AxisValue] = {"seq": 32, "head_dim": 16, "heads": 1}
    by_tile = [make_case(kernel, workload, axes={"tile": tile}) for tile in ("8x8", "64x16")]
    a, b = (kernel.tolerance(c, kernel.inputs(c))["o"] for c in by_tile)
    assert a == b
    low = make_case(kernel, workload, axes={"hint": "mediump"})
    assert kernel.tolerance(low, kernel.inputs(low))["o"].atol > a.atol


def test_keys_of_no_weight_owe_no_more_than_they_add() -> None:
    """4095 keys whose logits lie 40 below one: as many roundings as that one owes, not sixty times as many.

    Added in fp32 in any order, light keys change a sum of weight 1 by at most what they are.
    """
    shape = _shape(2, kv_seq=4096)
    q, k, v = (np.ones((2, n, 64), np.float32) for n in (2, 4096, 4096))
    k *= np.float32(-40 / 8)
    k[:, 4000] = 0
    v[:, :, 0] = np.linspace(-1, 1, 4096)
    light = attention_tolerance(q, k, v, shape, PLAIN)
    one = attention_tolerance(q, k[:, 4000:4001], v[:, 4000:4001], _shape(2, kv_seq=1), PLAIN)
    assert light.rtol == pytest.approx(one.rtol, rel=0.2)
    heavy = attention_tolerance(q, k * np.float32(0.01), v, shape, PLAIN)
    assert light.rtol < heavy.rtol / 100
    assert 0 < _worst_ratio(light, _fp32(q, k, v, shape), attention_reference(q, k, v, shape)) <= 1
