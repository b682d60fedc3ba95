"""Masks of attention: one [seq, kv_seq] for all heads, beside what causality and a window hide.

additive: numbers of the storage type, added to the scaled logit in fp32. -inf hides a key; any other number
is added, whatever its size: a row whose keys all have -65504 or -1e9 is not empty, and gives a mean of v.
boolean: 32-bit words, [seq, ceil(kv_seq / 32)]; bit ``j % 32`` of word ``j / 32`` of a row is 1 where the row
sees key j. Bits past kv_seq are 1 in the inputs and must not show anything.
"""

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Array, Buffer
from orchestrator.ops.attention_shape import WORD_KEYS, AttentionShape
from orchestrator.ops.halves import storage_dtype


def mask_buffer(case: Case) -> Buffer | None:
    """The buffer ``mask`` of a case that has one."""
    shape = AttentionShape.of(case)
    match shape.mask:
        case "additive":
            return Buffer("mask", "in", storage_dtype(case), shape.seq * shape.kv_seq)
        case "boolean":
            return Buffer("mask", "in", "u32", shape.seq * shape.mask_words)
        case _:
            return None


def packed(visible: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """[seq, kv_seq] as words."""
    rows, keys = visible.shape
    bits = np.ones((rows, -(-keys // WORD_KEYS) * WORD_KEYS), bool)
    bits[:, :keys] = visible
    return np.packbits(bits, axis=1, bitorder="little").view("<u4").astype(np.uint32)


def unpacked(words: Array, kv_seq: int) -> NDArray[np.bool_]:
    """The inverse: [seq, kv_seq]."""
    little = np.ascontiguousarray(words.astype("<u4"))
    return np.unpackbits(little.view(np.uint8), axis=1, bitorder="little")[:, :kv_seq].astype(bool)


class LogitMask:
    """What happens to scaled logits: the mask's numbers are added, and hidden keys become -inf."""

    def __init__(self, shape: AttentionShape, mask: Array | None) -> None:
        """``mask``: the buffer's contents, None where the shape has none."""
        if (mask is None) != (shape.mask == "none"):
            raise ValueError(f"mask {shape.mask}: {'no' if mask is None else 'a'} buffer was given")
        self._shape = shape
        self._columns = np.arange(shape.kv_seq)
        self.added = mask if shape.mask == "additive" else None
        """[seq, kv_seq] of an additive mask."""
        self._bits = unpacked(mask, shape.kv_seq) if mask is not None and shape.mask == "boolean" else None

    def apply(self, logits: Array, start: int) -> None:
        """In place, to [rows, kv_seq] of the query rows from ``start`` on. A hidden NaN is hidden as well."""
        shape, stop = self._shape, start + len(logits)
        if self.added is not None:
            logits += self.added[start:stop].astype(logits.dtype)
        if shape.causal or shape.window:
            rows = range(start, stop)
            visible = np.array([shape.visible(row) for row in rows])[:, None]
            first = np.array([shape.first(row) for row in rows])[:, None]
            logits[(self._columns < first) | (self._columns >= visible)] = -np.inf
        if self._bits is not None:
            logits[~self._bits[start:stop]] = -np.inf
