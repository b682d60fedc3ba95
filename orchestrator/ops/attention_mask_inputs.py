"""Named inputs about masks (n4 and n12 of docs/numerics.md), and the mask of every other distribution.

A true mask is -inf, or a bit: a row that sees no key is 0. A finite one is a number like any other, so that
softmax over keys that all have it is what it is without it: -65504, the lowest fp16, and -1e9 are what many
programs write instead of -inf.
"""

from collections.abc import Callable, Mapping

import numpy as np

from orchestrator.ops.attention_distribution import (
    F64,
    Distribution,
    Needs,
    Tensors,
    from_logits,
    needs_exact_key_numbers,
)
from orchestrator.ops.attention_shape import AttentionShape

LOWEST_HALF = -65504.0
_MASK_STREAM = 0x6D61736B
"""Of the random numbers, so that q, k and v are the same with and without a mask."""


def random_mask(shape: AttentionShape, seed: int) -> F64:
    """Standard normal, a quarter of it -inf: no two rows and no two columns are alike."""
    rng = np.random.default_rng([seed, _MASK_STREAM])
    added = rng.standard_normal((shape.seq, shape.kv_seq))
    added[rng.random(added.shape) < 0.25] = -np.inf
    return added


def _ones_and_on(shape: AttentionShape, _: int) -> Tensors:
    return from_logits(shape, np.zeros(shape.kv_seq), np.arange(1, shape.kv_seq + 1, dtype=np.float64))


def _as_causal(value: float) -> Callable[[AttentionShape, int], F64]:
    """A bottom-right causal mask spelled with ``value``."""

    def build(shape: AttentionShape, _: int) -> F64:
        rows, keys = np.arange(shape.seq)[:, None], np.arange(shape.kv_seq)[None, :]
        return np.where(keys <= rows + shape.kv_seq - shape.seq, 0.0, value)

    return build


def _without_key_0(shape: AttentionShape, _: int) -> F64:
    added = np.zeros((shape.seq, shape.kv_seq))
    added[:, 0] = -np.inf
    return added


def _one_then_three(score: float) -> Callable[[AttentionShape, int], Tensors]:
    """All logits ``score``; v is 1 in the first half of the keys and 3 in the second."""

    def build(shape: AttentionShape, _: int) -> Tensors:
        values = np.where(np.arange(shape.kv_seq) < shape.kv_seq // 2, 1.0, 3.0)
        return from_logits(shape, np.full(shape.kv_seq, score), values)

    return build


def _lowest_half(shape: AttentionShape, _: int) -> F64:
    """Even rows: -65504 on the second half of the keys. Odd rows: on all."""
    added = np.full((shape.seq, shape.kv_seq), LOWEST_HALF)
    added[::2, : shape.kv_seq // 2] = 0.0
    return added


def _plain(*, additive: bool) -> Needs:
    """A mask, nothing else that hides keys, and key numbers that fp16 holds."""

    def check(shape: AttentionShape) -> str | None:
        if shape.mask == "none" or (additive and shape.mask != "additive"):
            return f"mask {shape.mask} is not {'additive' if additive else 'additive or boolean'}"
        if shape.causal or shape.window:
            return "causality or a window hides keys beside the mask"
        return needs_exact_key_numbers(shape)

    return check


def _needs_halves(shape: AttentionShape) -> str | None:
    odd = f"kv_seq {shape.kv_seq} is odd: half of the keys are masked" if shape.kv_seq % 2 else None
    return _plain(additive=True)(shape) or odd


def _needs_causal(shape: AttentionShape) -> str | None:
    if shape.mask == "none":
        return "mask none hides no key"
    return needs_exact_key_numbers(shape) if shape.causal else "causal is false: every row has keys"


def _lowest(score: float) -> Distribution:
    return Distribution(
        f"-65504 on logits of {score:g}: masked, not -inf; 1.0 where half of the keys have it, 2.0 where all",
        _one_then_three(score),
        _needs_halves,
        mask=_lowest_half,
        mask_peak=-LOWEST_HALF,
    )


MASKED: Mapping[str, Distribution] = {
    "n4_mask_inf": Distribution(
        "a causal mask of -inf, or of bits: rows without keys are exactly 0",
        _ones_and_on,
        _plain(additive=False),
        storage_peak=2048.0,
        mask=_as_causal(-np.inf),
    ),
    "n4_mask_65504": Distribution(
        "a causal mask of -65504: rows whose keys all have it are the mean of v",
        _ones_and_on,
        _plain(additive=True),
        storage_peak=2048.0,
        mask=_as_causal(LOWEST_HALF),
        mask_peak=-LOWEST_HALF,
    ),
    "n4_mask_1e9": Distribution(
        "a causal mask of -1e9: rows whose keys all have it are the mean of v",
        _ones_and_on,
        _plain(additive=True),
        storage_peak=2048.0,
        mask=_as_causal(-1e9),
        mask_peak=1e9,
    ),
    "n4_causal_and_mask": Distribution(
        "causality and a mask that hides key 0 leave some rows no key: exactly 0",
        _ones_and_on,
        _needs_causal,
        storage_peak=2048.0,
        mask=_without_key_0,
    ),
    "n12_score_minus_16": _lowest(-16.0),
    "n12_score_minus_15": _lowest(-15.0),
}
