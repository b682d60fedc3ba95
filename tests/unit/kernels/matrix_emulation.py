"""The tile loop of kernels/attention_flash_matrix in numpy, with the constants of the rendered shader.

Sums are fp32 in another order than a device's, everything that the template rounds is rounded, what it pads
is padded and what it masks is masked. Elements that cross the memory bus are counted on the way.
"""

import re
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Array
from orchestrator.ops.attention import AttentionShape
from orchestrator.planning.kernel_folder import LoadedKernel
from orchestrator.planning.render import render_case

F32 = NDArray[np.float32]
SIDE = 16
HALF_SMALLEST = 2.0**-14


@dataclass(frozen=True)
class Constants:
    """As the shader declares them."""

    br: int
    bc: int
    scale: np.float32
    lowest: np.float32
    growth: np.float32
    headroom: np.float32
    weightless: np.float32

    @classmethod
    def of(cls, loaded: LoadedKernel, case: Case) -> "Constants":
        (only,) = render_case(loaded, case).passes
        found: dict[str, str] = dict(re.findall(r"^const \w+ (\w+) = ([^;]+);", only.glsl, re.M))
        floats = (np.float32(found[n]) for n in ("LOG2_SCALE", "LOWEST", "GROWTH", "HEADROOM", "WEIGHTLESS"))
        return cls(int(found["BR"]), int(found["BC"]), *floats)

    def without_headroom(self) -> "Constants":
        return replace(self, headroom=np.float32(0))


@dataclass
class Emulation:
    """``flush``: a device without fp16 subnormals. ``truncate``: one that rounds weights towards zero."""

    constants: Constants
    shape: AttentionShape
    flush: bool = False
    truncate: bool = False
    moved: int = 0
    """Elements read from and written to buffers."""
    largest: float = field(default=0.0)
    """Of all weights, as fp16 holds them."""

    def run(self, q: Array, k: Array, v: Array) -> Array:
        """o, [heads, seq, head_dim] fp16."""
        shape, c = self.shape, self.constants
        o = np.zeros((shape.heads, shape.seq, shape.head_dim), np.float16)
        with np.errstate(all="ignore"):
            for head in range(shape.heads):
                for first in range(0, shape.seq, c.br):
                    last = min(first + c.br, shape.seq)
                    kv = head // shape.group
                    block = self._block(q[head], k[kv], v[kv], first)
                    o[head, first:last] = block[: last - first, : shape.head_dim]
                    self.moved += (last - first) * shape.head_dim
        return o

    def _block(self, q: Array, k: Array, v: Array, first: int) -> Array:
        """The rows of one workgroup, padded ones among them."""
        shape, c = self.shape, self.constants
        queries = self._fetch(q, first, c.br)
        limits = np.array([shape.visible(first + row) for row in range(c.br)])
        m = np.full((c.br, 1), c.lowest)
        highest, total = m.copy(), np.zeros((c.br, 1), np.float32)
        acc = np.zeros(queries.shape, np.float32)
        for tile in range(0, shape.visible(min(first + c.br, shape.seq) - 1), c.bc):
            keys, values = self._fetch(k, tile, c.bc), self._fetch(v, tile, c.bc)
            s = np.zeros((c.br, c.bc), np.float32)
            for d in range(0, queries.shape[1], SIDE):
                s += queries[:, d : d + SIDE] @ keys[:, d : d + SIDE].T
            s[tile + np.arange(c.bc)[None, :] >= limits[:, None]] = -np.inf
            s *= c.scale
            top = np.fmax.reduce(s, axis=1, keepdims=True)
            grown = top - highest > c.growth
            highest = np.where(grown, top, highest)
            reference = np.where(grown, highest - c.headroom, m)
            correction = np.where(reference == m, np.float32(1), np.exp2(m - reference))
            m, total, acc = reference, total * correction, acc * correction
            x = s - m
            p = self._half(np.where(x < c.weightless, np.float32(0), np.exp2(x)))
            for key in range(0, c.bc, SIDE):
                some = p[:, key : key + SIDE]
                total += some.sum(axis=1, keepdims=True)
                acc += some @ values[key : key + SIDE]
        inverse = np.where(total == 0, np.float32(0), 1 / total)
        return (acc * inverse).astype(np.float16)

    def _fetch(self, rows: Array, first: int, count: int) -> F32:
        """A tile; zeros where there is nothing, in both directions."""
        width = -(-rows.shape[1] // SIDE) * SIDE
        there = rows[first : first + count]
        self.moved += there.size
        tile = np.zeros((count, width), np.float32)
        tile[: len(there), : rows.shape[1]] = there
        return tile

    def _half(self, weights: F32) -> F32:
        half = weights.astype(np.float16)
        if self.truncate:
            half = np.where(half > weights, np.nextafter(half, np.float16(0)), half)
        if self.flush:
            half = np.where(half < HALF_SMALLEST, np.float16(0), half)
            half = np.where(np.isnan(weights), np.float16(np.nan), half)
        self.largest = max(self.largest, float(np.nanmax(half, initial=0)))
        return half.astype(np.float32)
