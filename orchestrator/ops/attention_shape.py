"""Shape of one attention workload: what the words seq, kv_seq, heads, causal, window, mask and kv_rows mean.

q and o are [heads, seq, head_dim], C order. k and v have ``kv_rows`` rows a head, of which the first kv_seq
hold keys: [kv_heads, kv_rows, head_dim] where ``kv_order`` is head, [kv_rows, kv_heads, head_dim] where it is
row. Query head h reads key/value head ``h // (heads / kv_heads)``. What a mask looks like: attention_mask.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Array, Axis

PARAMS: tuple[Axis, ...] = (
    Axis("seq", None),
    Axis("kv_seq", None, default="seq"),
    Axis("head_dim", None),
    Axis("heads", None),
    Axis("kv_heads", None, default="heads"),
    Axis("causal", (False, True), default=False),
    Axis("align", ("bottom_right", "top_left"), default="bottom_right"),
    Axis("window", None, default=0),
    Axis("mask", ("none", "additive", "boolean"), default="none"),
    Axis("kv_rows", None, default="kv_seq"),
    Axis("kv_order", ("head", "row"), default="head"),
)
"""Workload parameters of the op. A default that names a parameter takes the value of that one."""

EXTRAS = ("align", "window", "mask", "kv_rows", "kv_order")
"""Parameters that a kernel need not have learnt (AttentionKernel.extras)."""

WORD_KEYS = 32
"""Keys in a word of a boolean mask."""


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """``softmax(scale · q kᵀ + mask) v`` per head; ``kv_heads < heads`` is grouped-query attention."""

    seq: int
    kv_seq: int
    head_dim: int
    heads: int
    kv_heads: int
    causal: bool
    align: str = "bottom_right"
    window: int = 0
    """0: none."""
    mask: str = "none"
    kv_rows: int = 0
    """Rows of k and v that a head has in memory; 0: kv_seq."""
    kv_order: str = "head"

    @classmethod
    def of(cls, case: Case) -> "AttentionShape":
        kv_seq, kv_rows = _size(case, "kv_seq"), _size(case, "kv_rows")
        return cls(
            seq=_size(case, "seq"),
            kv_seq=kv_seq,
            head_dim=_size(case, "head_dim"),
            heads=_size(case, "heads"),
            kv_heads=_size(case, "kv_heads"),
            causal=bool(case.workload.get("causal", False)),
            align=str(case.workload.get("align", "bottom_right")),
            window=_size(case, "window"),
            mask=str(case.workload.get("mask", "none")),
            kv_rows=0 if kv_rows == kv_seq else kv_rows,
            kv_order=str(case.workload.get("kv_order", "head")),
        )

    @property
    def scale(self) -> float:
        """1/√head_dim rounded to fp32: the op's parameter is an fp32 number, as in every real interface."""
        return float(np.float32(1.0 / math.sqrt(self.head_dim)))

    @property
    def group(self) -> int:
        """Query heads that share one key/value head."""
        return self.heads // self.kv_heads

    @property
    def diagonal(self) -> int:
        """Query i stands at key ``i + diagonal``: the last query at the last key (bottom-right), or the first
        query at the first key (top-left)."""
        return 0 if self.align == "top_left" else self.kv_seq - self.seq

    def visible(self, row: int) -> int:
        """One past the last key that causality and window show to a query row.

        Causal: key j is visible iff ``j <= i + diagonal``; a window alone: ``j < i + diagonal + window``.
        """
        reach = 1 if self.causal else self.window
        return min(self.kv_seq, max(0, row + self.diagonal + reach)) if reach else self.kv_seq

    def first(self, row: int) -> int:
        """The first key that they show: a window shows ``j > i + diagonal - window``. Never above visible."""
        if not self.window:
            return 0
        return min(self.kv_seq, max(0, row + self.diagonal - self.window + 1))

    def hides(self, bc: int) -> bool:
        """Whether some row goes through a tile of ``bc`` keys with a key that it does not see."""
        return self.causal or self.window > 0 or self.mask != "none" or self.kv_seq % bc != 0

    def row_blocks(self, br: int, bc: int) -> Iterator[tuple[int, int]]:
        """Of each block of BR query rows of a head: how many rows it has, and how many tiles of BC keys it
        goes through, from the first to the last one that any of its rows sees."""
        for rows, first, end in self._blocks(br, bc):
            yield rows, end - first

    def keys_read(self, br: int, bc: int) -> int:
        """Keys in those tiles, of all blocks of a head."""
        return sum(keys for _, keys in self._block_keys(br, bc))

    def pairs_read(self, br: int, bc: int) -> int:
        """Pairs of a query row and a key in a tile that its block goes through, of one head."""
        return sum(rows * keys for rows, keys in self._block_keys(br, bc))

    def mask_words_read(self, br: int, bc: int) -> int:
        """Words of a boolean mask that the rows of one head touch in those tiles, each once."""
        return sum(
            rows * (ceil_div(min(self.kv_seq, end * bc), WORD_KEYS) - first * bc // WORD_KEYS)
            for rows, first, end in self._blocks(br, bc)
            if end > first
        )

    def _block_keys(self, br: int, bc: int) -> Iterator[tuple[int, int]]:
        for rows, first, end in self._blocks(br, bc):
            yield rows, max(0, min(self.kv_seq, end * bc) - first * bc)

    def _blocks(self, br: int, bc: int) -> Iterator[tuple[int, int, int]]:
        """(rows, first tile, one past the last tile)."""
        for top in range(0, self.seq, br):
            bottom = min(top + br, self.seq)
            first = self.first(top) // bc
            yield bottom - top, first, max(first, ceil_div(self.visible(bottom - 1), bc))

    @property
    def pairs(self) -> int:
        """(query, key) pairs of one head that causality and window leave; a mask is data and not counted."""
        if not self.causal and not self.window:
            return self.seq * self.kv_seq
        return sum(self.visible(row) - self.first(row) for row in range(self.seq))

    @property
    def keys_seen(self) -> int:
        """Keys that some row sees."""
        return self.visible(self.seq - 1) - self.first(0)

    @property
    def allocated(self) -> int:
        """Rows of k and v a head."""
        return self.kv_rows or self.kv_seq

    @property
    def q_count(self) -> int:
        return self.heads * self.seq * self.head_dim

    @property
    def kv_count(self) -> int:
        """Elements of k, unused rows included."""
        return self.kv_heads * self.allocated * self.head_dim

    @property
    def mask_words(self) -> int:
        """Words in a row of a boolean mask."""
        return ceil_div(self.kv_seq, WORD_KEYS)

    def compact(self, stored: Array) -> Array:
        """[kv_heads, kv_seq, head_dim] of k or v as they lie in memory, without the unused rows."""
        by_head = np.moveaxis(stored, 1, 0) if self.kv_order == "row" else stored
        return by_head[:, : self.kv_seq]

    def stored(self, compact: Array) -> Array:
        """The inverse: k or v as they lie in memory, NaN in the unused rows."""
        whole = np.full((self.kv_heads, self.allocated, self.head_dim), np.nan, compact.dtype)
        whole[:, : self.kv_seq] = compact
        return np.ascontiguousarray(np.moveaxis(whole, 0, 1)) if self.kv_order == "row" else whole

    def asked(self) -> dict[str, AxisValue]:
        """Of EXTRAS, what is not as without them."""
        given: dict[str, AxisValue] = {
            "align": self.align,
            "window": self.window,
            "mask": self.mask,
            "kv_rows": self.kv_rows,
            "kv_order": self.kv_order,
        }
        plain = {"align": "bottom_right", "window": 0, "mask": "none", "kv_rows": 0, "kv_order": "head"}
        return {name: value for name, value in given.items() if value != plain[name]}

    def invalid(self) -> str | None:
        if self.heads % self.kv_heads:
            return f"kv_heads {self.kv_heads} does not divide heads {self.heads}"
        if self.align != "bottom_right" and not self.causal and not self.window:
            return f"align {self.align} needs causal or a window: nothing else has a diagonal"
        if self.allocated < self.kv_seq:
            return f"kv_rows {self.allocated} < kv_seq {self.kv_seq}: every key needs a row"
        return None


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _size(case: Case, name: str) -> int:
    value = case.workload.get(name, next(p.default for p in PARAMS if p.name == name))
    if isinstance(value, str):
        return _size(case, value)
    if value is None:
        raise KeyError(f"workload of {case.kernel} lacks {name}")
    return int(value)
