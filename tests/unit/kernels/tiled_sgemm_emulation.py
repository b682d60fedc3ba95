"""The dispatches of kernels/attention_tiled_sgemm as numpy loops over workgroups, counting what each moves.

It follows the passes that the kernel declares (grids, values, buffers) and works out by itself, from a matrix
of who sees whom, which words a workgroup touches. Scratch starts as NaN: what was never written shows.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Array, Kernel, Pass
from orchestrator.ops.attention_mask import LogitMask
from orchestrator.ops.attention_shape import AttentionShape
from orchestrator.ops.halves import element_bytes

F64 = NDArray[np.float64]


@dataclass
class Memory:
    """Buffers of one case, and bytes moved by buffer name."""

    kernel: Kernel
    case: Case
    inputs: dict[str, Array]
    moved: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        shape = AttentionShape.of(self.case)
        self.shape = shape
        self.bm, self.bn, self.bk = (int(n) for n in str(self.case.axes["block"]).split("x"))
        self.bc = int(self.case.axes["tile"])
        self.padded = -(-shape.head_dim // 4) * 4
        self.size = element_bytes(self.case)
        compact = {n: shape.compact(self.inputs[n]).astype(np.float64) for n in ("k", "v")}
        self.q: F64 = self.inputs["q"].astype(np.float64)
        self.k, self.v = compact["k"], compact["v"]
        sees = np.zeros((shape.seq, shape.kv_seq), bool)
        for row in range(shape.seq):
            sees[row, shape.first(row) : shape.visible(row)] = True
        self.sees = sees
        self.scores: F64 = np.full((shape.heads, shape.seq, self.bc), np.nan)
        self.acc: F64 = np.full((shape.heads, shape.seq, self.padded), np.nan)
        self.state: F64 = np.full((3, shape.heads, shape.seq), np.nan)
        self.o: F64 = np.full((shape.heads, shape.seq, shape.head_dim), np.nan)

    def tile_sees(self, tile: int) -> NDArray[np.bool_]:
        """[seq, BC]: the pairs of a tile; keys past the end are seen by nobody."""
        pairs = np.zeros((self.shape.seq, self.bc), bool)
        there = self.sees[:, tile * self.bc : (tile + 1) * self.bc]
        pairs[:, : there.shape[1]] = there
        return pairs

    def words_seen(self, tile: int) -> NDArray[np.bool_]:
        """[seq, BC]: all four keys of every word of scores of which the row sees one."""
        words = self.tile_sees(tile).reshape(self.shape.seq, self.bc // 4, 4).any(axis=2)
        return np.repeat(words, 4, axis=1)


def run(memory: Memory, steps: tuple[Pass, ...]) -> F64:
    """All dispatches in order; gives o."""
    of = {"scores": _scores, "softmax": _softmax, "weighted": _weighted, "finish": _finish}
    for step in steps:
        for head in range(step.grid[2] if step.template[:3] in ("sco", "wei") else step.grid[1]):
            of[step.template.split(".")[0]](memory, step, head)
    return memory.o


def _blocks(memory: Memory, step: Pass) -> list[tuple[int, slice]]:
    """(x, rows) of the workgroups of one head of an SGEMM."""
    bm, seq = memory.bm, memory.shape.seq
    return [
        (x, slice(y * bm, min((y + 1) * bm, seq))) for y in range(step.grid[1]) for x in range(step.grid[0])
    ]


def _scores(m: Memory, step: Pass, head: int) -> None:
    shape, tile = m.shape, step.values["TILE"]
    logit_mask = LogitMask(shape, m.inputs.get("mask"))
    for x, rows in _blocks(m, step):
        first = tile * m.bc + x * m.bn
        keys = slice(first, min(first + m.bn, shape.kv_seq))
        if not m.sees[rows, keys].any():
            continue
        queries, k = m.q[head, rows], m.k[head // shape.group, keys]
        m.moved["q"] += queries.size * m.size
        m.moved["k"] += k.size * m.size
        logits = np.full((shape.seq, shape.kv_seq), 0.0)
        logits[rows, keys] = shape.scale * queries @ k.T
        logit_mask.apply(logits, 0)
        block = np.full((len(queries), m.bn), -np.inf)
        block[:, : len(k)] = np.where(m.sees[rows, keys], logits[rows, keys], -np.inf)
        m.scores[head, rows, x * m.bn : (x + 1) * m.bn] = block
        m.moved["scores"] += block.size * 4
        if shape.mask == "additive":
            m.moved["mask"] += len(queries) * len(k) * m.size
        if shape.mask == "boolean":
            words = {key // 32 for key in range(keys.start, keys.stop)}
            m.moved["mask"] += len(queries) * len(words) * 4


def _softmax(m: Memory, step: Pass, head: int) -> None:
    first = step.values["FIRST"] == 1
    words = m.words_seen(step.values["TILE"])
    for row in range(m.shape.seq):
        peak, total = (-np.inf, 0.0) if first else m.state[:2, head, row]
        m.moved["state"] += (0 if first else 2) * 4 + 3 * 4
        at = words[row]
        s = m.scores[head, row, at]
        m.moved["scores"] += 2 * s.size * 4
        high = max(peak, s.max(initial=-np.inf))
        shift = 0.0 if high == -np.inf else high
        factor = 1.0 if high == peak else np.exp(peak - shift)
        m.scores[head, row, at] = np.exp(s - shift)
        m.state[:, head, row] = high, total * factor + np.exp(s - shift).sum(), factor


def _weighted(m: Memory, step: Pass, head: int) -> None:
    shape, tile, first = m.shape, step.values["TILE"], step.values["FIRST"] == 1
    words, pairs = m.words_seen(tile), m.tile_sees(tile)
    for x, rows in _blocks(m, step):
        seen = np.flatnonzero(pairs[rows].any(axis=0))
        if not len(seen) and not first:
            continue
        padded = slice(x * m.bn, min((x + 1) * m.bn, m.padded))
        real = slice(padded.start, min(padded.stop, shape.head_dim))
        sums = np.zeros((rows.stop - rows.start, padded.stop - padded.start))
        if len(seen):
            begin, end = int(seen[0]) // m.bk * m.bk, int(seen[-1]) + 1
            there = words[rows]
            p = np.where(there, np.where(there, m.scores[head, rows], 0.0), 0.0)
            v = m.v[head // shape.group, tile * m.bc + begin : tile * m.bc + end, real]
            m.moved["scores"] += int(there.sum()) * 4
            m.moved["v"] += v.size * m.size
            sums[:, : real.stop - real.start] = p[:, begin:end] @ v
        if not first:
            sums += m.acc[head, rows, padded] * m.state[2, head, rows][:, None]
            m.moved["acc"] += sums.size * 4
            m.moved["state"] += len(sums) * 4
        m.acc[head, rows, padded] = sums
        m.moved["acc"] += sums.size * 4


def _finish(m: Memory, step: Pass, head: int) -> None:
    del step
    total = m.state[1, head]
    inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total != 0.0)
    m.o[head] = m.acc[head, :, : m.shape.head_dim] * inverse[:, None]
    m.moved["acc"] += m.acc[head].size * 4
    m.moved["state"] += total.size * 4
    m.moved["o"] += m.o[head].size * m.size
