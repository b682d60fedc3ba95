"""Shape of one attention workload: what the words seq, kv_seq, heads, kv_heads and causal mean.

Layout of all four tensors, C order: q and o are [heads, seq, head_dim]; k and v are
[kv_heads, kv_seq, head_dim]. Query head h reads key/value head ``h // (heads / kv_heads)``.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Axis

PARAMS: tuple[Axis, ...] = (
    Axis("seq", None),
    Axis("kv_seq", None, default="seq"),
    Axis("head_dim", None),
    Axis("heads", None),
    Axis("kv_heads", None, default="heads"),
    Axis("causal", (False, True), default=False),
)
"""Workload parameters of the op. A default that is a word takes the value of the parameter so named."""


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """``softmax(scale · q kᵀ + mask) v`` per head; ``kv_heads < heads`` is grouped-query attention."""

    seq: int
    kv_seq: int
    head_dim: int
    heads: int
    kv_heads: int
    causal: bool

    @classmethod
    def of(cls, case: Case) -> "AttentionShape":
        return cls(
            seq=_size(case, "seq"),
            kv_seq=_size(case, "kv_seq"),
            head_dim=_size(case, "head_dim"),
            heads=_size(case, "heads"),
            kv_heads=_size(case, "kv_heads"),
            causal=bool(case.workload.get("causal", False)),
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
        """Causal: key k is visible to query i iff ``k <= i + diagonal`` (bottom-right aligned)."""
        return self.kv_seq - self.seq

    def visible(self, row: int) -> int:
        """Number of keys that a query row sees: always the first ones."""
        if not self.causal:
            return self.kv_seq
        return min(self.kv_seq, max(0, row + self.diagonal + 1))

    def row_blocks(self, br: int, bc: int) -> Iterator[tuple[int, int]]:
        """Of each block of BR query rows of a head: how many rows it has, and how many tiles of BC keys it
        goes through, up to the last one that any of its rows sees."""
        for first in range(0, self.seq, br):
            last = min(first + br, self.seq)
            yield last - first, -(-self.visible(last - 1) // bc)

    @property
    def pairs(self) -> int:
        """Visible (query, key) pairs of one head."""
        return sum(self.visible(row) for row in range(self.seq)) if self.causal else self.seq * self.kv_seq

    @property
    def q_count(self) -> int:
        return self.heads * self.seq * self.head_dim

    @property
    def kv_count(self) -> int:
        return self.kv_heads * self.kv_seq * self.head_dim

    def invalid(self) -> str | None:
        if self.heads % self.kv_heads:
            return f"kv_heads {self.kv_heads} does not divide heads {self.heads}"
        return None


def _size(case: Case, name: str) -> int:
    value = case.workload.get(name, next(p.default for p in PARAMS if p.name == name))
    if isinstance(value, str):
        return _size(case, value)
    if value is None:
        raise KeyError(f"workload of {case.kernel} lacks {name}")
    return int(value)
