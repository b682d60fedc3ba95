"""Named input distributions of attention: inputs on which real kernels were wrong, and random ones.

The numbers n1 … n15 are those of the project's list of nasty inputs (docs/numerics.md repeats it with the
right answers). Not here, and why:

- n11 (what a hint delivers): needs exact products, so it belongs to the ``scale`` and ``precision_probe``
  kernels; ``beyond_half`` asks the range half of that question here.
- n12 and what n4 says about masks: attention_mask_inputs.
- n13 (a cache with unused rows): ``normal`` with ``kv_rows`` and ``kv_order``, a workload and not an input.
- n14 (missing barriers): ``normal`` at seq 662 and 1500 with the runner's ``replays``, not an input.

Each distribution builds q, k and v in float64; the op rounds them to the storage type. Logits are put
through dimension 0 alone: q₀ = √head_dim cancels the scale, so k₀ is the logit.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from orchestrator.ops.attention_distribution import (
    F64,
    Distribution,
    Needs,
    Tensors,
    from_logits,
    needs_exact_key_numbers,
)
from orchestrator.ops.attention_mask_inputs import MASKED, random_mask
from orchestrator.ops.attention_shape import AttentionShape

HALF_MAX = 65504.0
MEDIUMP_MAX = 2.0**14
"""ESSL 3.10 section 4.7: mediump guarantees magnitudes below 2^14 only."""


@dataclass(frozen=True, slots=True)
class Range:
    """What a variant's number formats can hold."""

    half_storage: bool = False
    mediump: bool = False
    half_products: bool = False
    half_sums: bool = False
    half_run: int = 0
    """Weighted values, each of another key, that are summed in fp16; 0: none."""


def poisoned_row(shape: AttentionShape) -> tuple[int, int]:
    """(head, row) whose scores n15 makes non-finite."""
    return shape.heads // 2, shape.seq // 2


def _normal(shape: AttentionShape, seed: int) -> Tensors:
    rng = np.random.default_rng(seed)
    q = rng.standard_normal((shape.heads, shape.seq, shape.head_dim))
    k = rng.standard_normal((shape.kv_heads, shape.kv_seq, shape.head_dim))
    v = rng.standard_normal((shape.kv_heads, shape.kv_seq, shape.head_dim))
    return q, k, v


def _fixed(logits: list[float], values: list[float]) -> Callable[[AttentionShape, int], Tensors]:
    return lambda shape, _: from_logits(shape, np.array(logits), np.array(values))


def _constant(logit: float, value: float) -> Callable[[AttentionShape, int], Tensors]:
    return lambda shape, _: from_logits(
        shape, np.full(shape.kv_seq, logit), np.full(shape.kv_seq, value, np.float64)
    )


def _dot_73728(shape: AttentionShape, seed: int) -> Tensors:
    each = math.sqrt(73728.0 / shape.head_dim)  # 24 where head_dim is 128
    q = np.full((shape.heads, shape.seq, shape.head_dim), each)
    k = np.full((shape.kv_heads, shape.kv_seq, shape.head_dim), each)
    v = 1.0 + np.random.default_rng(seed).random(k.shape)
    return q, k, v


def _deep(k0: float, logit: float) -> Callable[[AttentionShape, int], Tensors]:
    def build(shape: AttentionShape, _: int) -> Tensors:
        q, k, v = from_logits(shape, np.full(4, k0), np.array([1.0, 2.0, 3.0, 6.0]))
        q[..., 0] = logit / k0 * math.sqrt(shape.head_dim)  # -600 and -400 where head_dim is 64
        return q, k, v

    return build


def _first_half_masked(shape: AttentionShape, _: int) -> Tensors:
    logits = np.zeros(shape.kv_seq)
    logits[: shape.kv_seq // 2] = -np.inf
    return from_logits(shape, logits, np.arange(shape.kv_seq, dtype=np.float64))


def _one_key(shape: AttentionShape, _: int) -> Tensors:
    q, k, v = from_logits(shape, np.zeros(1), np.zeros(1))
    v[...] = np.arange(1, shape.head_dim + 1)
    return q, k, v


def _alternating(shape: AttentionShape, _: int) -> Tensors:
    values = np.where(np.arange(shape.kv_seq) % 2, 3.0, 1.0)
    return from_logits(shape, np.zeros(shape.kv_seq), values)


def _rising(shape: AttentionShape, _: int) -> Tensors:
    ramp = np.arange(shape.kv_seq, dtype=np.float64)
    return from_logits(shape, ramp, ramp)


def _last_30(shape: AttentionShape, _: int) -> Tensors:
    logits = np.zeros(shape.kv_seq)
    logits[-1] = 30.0
    return from_logits(shape, logits, np.arange(shape.kv_seq, dtype=np.float64))


def _faint_majority(shape: AttentionShape, _: int) -> Tensors:
    logits = np.full(shape.kv_seq, -11.0)
    logits[0] = 0.0
    values = np.ones(shape.kv_seq)
    values[0] = 0.0
    return from_logits(shape, logits, values)


def _poisoned(value: float) -> Callable[[AttentionShape, int], Tensors]:
    def build(shape: AttentionShape, seed: int) -> Tensors:
        q, k, v = _normal(shape, seed)
        head, row = poisoned_row(shape)
        q[head, row, 0] = value
        return q, k, v

    return build


def _needs(**wanted: int) -> Needs:
    def check(shape: AttentionShape) -> str | None:
        for name, value in wanted.items():
            if getattr(shape, name) != value:
                return f"{name} {getattr(shape, name)} is not {value}"
        return None

    return check


def _needs_even_keys(shape: AttentionShape) -> str | None:
    return f"kv_seq {shape.kv_seq} is odd: half of the keys are masked" if shape.kv_seq % 2 else None


def _needs_eight_dimensions(shape: AttentionShape) -> str | None:
    return f"head_dim {shape.head_dim} < 8: single products leave mediump" if shape.head_dim < 8 else None


def _needs_rows_without_keys(shape: AttentionShape) -> str | None:
    if not shape.causal:
        return "causal is false: every row has keys"
    if shape.kv_seq >= shape.seq:
        return f"kv_seq {shape.kv_seq} is not below seq {shape.seq}: every row has keys"
    return None


DISTRIBUTIONS: Mapping[str, Distribution] = {
    "normal": Distribution("standard normal q, k and v; all heads differ", _normal),
    "n1_logit_151": Distribution(
        "exp overflows fp32 unless the row maximum is subtracted: 3.0",
        _fixed([151.29, 151.29, 0.0, -3.0], [2.0, 4.0, 100.0, -100.0]),
        _needs(kv_seq=4),
    ),
    "n1_logit_12": Distribution(
        "exp overflows fp16 unless the row maximum is subtracted: 3.000282",
        _fixed([12.0, 12.0, 0.0, -3.0], [2.0, 4.0, 100.0, -100.0]),
        _needs(kv_seq=4),
    ),
    "n2_dot_73728": Distribution(
        "q·k overflows fp16 unless q is scaled first or the sum is fp32: the mean of v",
        _dot_73728,
        _needs_eight_dimensions,
        product_peak=9216.0,
    ),
    "n3_logit_minus_60000": Distribution(
        "a finite minus infinity of -5e4 zeroes real rows: 3.0",
        _deep(800.0, -60000.0),
        _needs(kv_seq=4),
        product_peak=60_000.0,
    ),
    "n3_logit_minus_20000": Distribution(
        "a finite minus infinity of -1e4 zeroes real rows: 3.0",
        _deep(400.0, -20000.0),
        _needs(kv_seq=4),
        product_peak=20_000.0,
    ),
    "n4_rows_without_keys": Distribution(
        "causal rows that see no key are exactly 0, the others the mean of what they see",
        lambda shape, _: from_logits(
            shape, np.zeros(shape.kv_seq), np.arange(1, shape.kv_seq + 1, dtype=np.float64)
        ),
        lambda shape: _needs_rows_without_keys(shape) or needs_exact_key_numbers(shape),
        storage_peak=2048.0,
    ),
    "n5_first_tile_masked": Distribution(
        "logits of the first half are -inf: (-inf) - (-inf) in the rescale is NaN; right: mean of the rest",
        _first_half_masked,
        lambda shape: _needs_even_keys(shape) or needs_exact_key_numbers(shape),
        storage_peak=2048.0,
        product_peak=math.inf,
    ),
    "n6_one_key": Distribution(
        "one key, v = 1 … head_dim: every row of every head is v, whatever the padding",
        _one_key,
        _needs(kv_seq=1),
        storage_peak=2048.0,
    ),
    "n7_logit_minus_50": Distribution(
        "zero padding of a partial tile wins over logits of -50: 7.0", _constant(-50.0, 7.0)
    ),
    "n8_constant_500": Distribution(
        "256 values of 500 overflow an fp16 accumulator: 500",
        _constant(0.0, 500.0),
        _needs(kv_seq=256),
        not_half_sums="the sum 128000 > 65504, the largest fp16",
    ),
    "n8_constant_40": Distribution(
        "2048 values of 40 overflow an fp16 accumulator: 40",
        _constant(0.0, 40.0),
        _needs(kv_seq=2048),
        not_half_sums="the sum 81920 > 65504, the largest fp16",
    ),
    "n8_constant_32": Distribution(
        "4096 values of 32 overflow an fp16 accumulator: 32",
        _constant(0.0, 32.0),
        _needs(kv_seq=4096),
        not_half_sums="the sum 131072 > 65504, the largest fp16",
    ),
    "n8_alternating": Distribution(
        "an fp16 sum sticks at 2048 and doubles the mean: 2.0",
        _alternating,
        _needs(kv_seq=4096),
        not_half_sums="1 added to 2048 is lost in fp16",
    ),
    "n9_rising_logits": Distribution(
        "logits 0 … 127: every tile has a new maximum: 126.418; 78.418 without the rescale",
        _rising,
        _needs(kv_seq=128),
    ),
    "n9_last_logit_30": Distribution(
        "the last key wins: 127.0; 48.32 without the rescale", _last_30, _needs(kv_seq=128)
    ),
    "n10_faint_majority": Distribution(
        "4095 weights of e^-11 count: 0.064015; 0 if fp16 subnormals are flushed",
        _faint_majority,
        _needs(kv_seq=4096),
        not_half_products="weights of e^-11 < 2^-14 are fp16 subnormals, which a device may flush to 0",
    ),
    "n15_nan_row": Distribution(
        "normal with NaN in one row's scores: that row is not finite, every other bit unchanged",
        _poisoned(math.nan),
        product_peak=math.inf,
    ),
    "n15_inf_row": Distribution(
        "normal with ±inf in one row's scores: that row is not finite, every other bit unchanged",
        _poisoned(math.inf),
        product_peak=math.inf,
    ),
    "beyond_half": Distribution(
        "v = 131072: inf wherever fp16 was delivered instead of fp32",
        _constant(0.0, 131072.0),
        storage_peak=131072.0,
        product_peak=131072.0,
    ),
}


KNOWN: Mapping[str, Distribution] = {**DISTRIBUTIONS, **MASKED}
"""Those that are about masks last."""


def build(name: str, shape: AttentionShape, seed: int) -> Tensors:
    """q, k, v in float64, without unused rows of k and v. Raises KeyError for an unknown name."""
    return KNOWN[name].build(shape, seed)


def build_mask(name: str, shape: AttentionShape, seed: int) -> F64:
    """[seq, kv_seq]: what is added to logits; a boolean mask hides where that is -inf."""
    return (KNOWN[name].mask or random_mask)(shape, seed)


def refusal(name: str, shape: AttentionShape, formats: Range) -> str | None:
    """Why the distribution does not exist for a shape or a precision, or None."""
    found = KNOWN.get(name)
    if found is None:
        return f"inputs {name} are not defined for attention; known: {', '.join(KNOWN)}"
    why = found.needs(shape)
    if why:
        return f"inputs {name}: {why}"
    stored = max(found.storage_peak, found.mask_peak)
    if formats.half_storage and stored > HALF_MAX:
        return f"inputs {name}: magnitude {stored:g} > {HALF_MAX:g}, the largest fp16"
    peak = max(found.storage_peak, found.product_peak)
    if formats.mediump and peak >= MEDIUMP_MAX:
        return f"inputs {name}: magnitude {peak:g} > {MEDIUMP_MAX:g}, what mediump guarantees"
    run = min(formats.half_run, -(-shape.kv_seq // 2))
    if run * found.storage_peak > HALF_MAX:
        return f"inputs {name}: {run} values of {found.storage_peak:g} in one fp16 sum > {HALF_MAX:g}"
    unfit = (formats.half_products and found.not_half_products) or (formats.half_sums and found.not_half_sums)
    return f"inputs {name}: {unfit}" if unfit else None
