"""The cost model of attention_naive and attention_flash against loop nests that count what they move.

The nests go through memory as the templates do, decide about every pair of a query and a key by the words of
docs/attention.md alone, and compute the output on the way, so that what is counted is an attention.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Array, Reference
from orchestrator.ops.attention import AttentionKernel
from orchestrator.ops.attention_glsl import Words
from orchestrator.ops.attention_shape import AttentionShape
from orchestrator.planning.kernel_folder import load_kernel
from tests.kernels.harness import KERNELS, make_case

FLASH, NAIVE = (load_kernel(KERNELS / name).kernel for name in ("attention_flash", "attention_naive"))

WORKLOADS: tuple[dict[str, AxisValue], ...] = (
    {"seq": 21, "head_dim": 8, "heads": 2},
    {"seq": 21, "head_dim": 5, "heads": 4, "kv_heads": 2, "causal": True},
    {"seq": 9, "kv_seq": 40, "head_dim": 12, "heads": 1, "causal": True},
    {"seq": 40, "kv_seq": 9, "head_dim": 4, "heads": 1, "causal": True},
    {"seq": 40, "kv_seq": 9, "head_dim": 4, "heads": 1, "causal": True, "align": "top_left"},
    {"seq": 9, "kv_seq": 70, "head_dim": 4, "heads": 1, "causal": True, "align": "top_left", "window": 3},
    {"seq": 70, "head_dim": 4, "heads": 2, "kv_heads": 1, "causal": True, "window": 20},
    {"seq": 33, "head_dim": 4, "heads": 1, "window": 9},
    {"seq": 70, "kv_seq": 20, "head_dim": 4, "heads": 1, "window": 5},
    {"seq": 17, "kv_seq": 70, "head_dim": 4, "heads": 2, "mask": "additive"},
    {"seq": 40, "head_dim": 4, "heads": 2, "causal": True, "window": 12, "mask": "additive"},
    {"seq": 17, "kv_seq": 70, "head_dim": 4, "heads": 2, "mask": "boolean"},
    {"seq": 70, "head_dim": 4, "heads": 2, "causal": True, "window": 12, "mask": "boolean"},
    {"seq": 1, "kv_seq": 37, "head_dim": 4, "heads": 3, "kv_rows": 64, "kv_order": "row"},
)


@dataclass
class Memory:
    """One head's inputs and what has been moved."""

    shape: AttentionShape
    element: int
    q: Reference
    k: Reference
    v: Reference
    added: Reference
    """Of the mask; -inf where a bit hides."""
    moved: int = 0
    dispatches: int = 0
    """Sweeps over all workgroups; what one writes, the next ones read."""
    _words: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    def sees(self, row: int, key: int) -> bool:
        """As docs/attention.md says it; the mask apart."""
        s = self.shape
        at = row + (s.kv_seq - s.seq if s.align == "bottom_right" else 0)
        if s.causal and key > at:
            return False
        return not s.window or (key > at - s.window and (s.causal or key < at + s.window))

    def sees_some(self, rows: range, keys: range) -> bool:
        return any(self.sees(row, key) for row in rows for key in keys)

    def load(self, tensor: Reference, rows: range) -> Reference:
        self.moved += len(rows) * self.shape.head_dim * self.element
        return tensor[rows.start : rows.stop]

    def new_workgroup(self) -> None:
        """Which has no word of the mask in its cache."""
        self._words.clear()

    def logits(self, queries: Reference, keys: Reference, row0: int, key0: int) -> Reference:
        """With the mask's numbers read, and hidden keys."""
        s = queries @ keys.T * self.shape.scale
        for row, key in np.ndindex(s.shape):
            s[row, key] += self._masked(row0 + row, key0 + key)
            if not self.sees(row0 + row, key0 + key):
                s[row, key] = -np.inf
        return s

    def _masked(self, row: int, key: int) -> float:
        match self.shape.mask:
            case "additive":
                self.moved += self.element
            case "boolean" if (row, key // 32) not in self._words:
                self._words.add((row, key // 32))
                self.moved += 4
            case _:
                pass
        return float(self.added[row, key])


def _steps(stop: int, step: int) -> list[range]:
    return [range(at, min(at + step, stop)) for at in range(0, stop, step)]


def _flash(case: Case, m: Memory) -> Reference:
    br, bc = map(int, str(case.axes["tile"]).split("x"))
    o = np.zeros(m.q.shape)
    m.dispatches += 1
    for rows in _steps(m.shape.seq, br):
        m.new_workgroup()
        queries = m.load(m.q, rows)
        high, total = np.full((len(rows), 1), -np.inf), np.zeros((len(rows), 1))
        sums = np.zeros(queries.shape)
        for keys in _steps(m.shape.kv_seq, bc):
            if not m.sees_some(rows, keys):
                continue
            s = m.logits(queries, m.load(m.k, keys), rows.start, keys.start)
            new = np.maximum(high, s.max(axis=1, keepdims=True))
            shift = np.where(np.isneginf(new), 0.0, new)
            p, back = np.exp(s - shift), np.exp(high - shift)
            total, sums, high = total * back + p.sum(1, keepdims=True), sums * back, new
            sums += p @ m.load(m.v, keys)
        o[rows.start : rows.stop] = np.divide(sums, total, out=np.zeros(sums.shape), where=total != 0)
        m.moved += o[rows.start : rows.stop].size * m.element
    return o


def _naive(case: Case, m: Memory) -> Reference:
    t, shape = int(str(case.axes["tile"]).split("x")[0]), m.shape
    scores, o = np.full((shape.seq, shape.kv_seq), np.nan), np.zeros(m.q.shape)
    m.dispatches += 1
    for rows in _steps(shape.seq, t):
        for keys in _steps(shape.kv_seq, t):
            if m.sees_some(rows, keys):
                m.new_workgroup()
                s = m.logits(m.load(m.q, rows), m.load(m.k, keys), rows.start, keys.start)
                scores[rows.start : rows.stop, keys.start : keys.stop] = s
                m.moved += 4 * s.size
    half = case.axes["precision"] == "fp16"
    sums = np.zeros(shape.seq)
    m.dispatches += 1
    for row in range(shape.seq):
        seen = [key for key in range(shape.kv_seq) if m.sees(row, key)]
        m.moved += 8 * len(seen) + 4 * half
        weights = np.exp(scores[row, seen] - max([s for s in scores[row, seen] if s > -np.inf], default=0.0))
        sums[row] = weights.sum()
        scores[row, seen] = weights
    m.dispatches += 1
    for rows in _steps(shape.seq, t):
        for words in _steps(Words.of(case).units, t):
            unit = Words.of(case).unit
            columns = slice(words.start * unit, min(words.stop * unit, shape.head_dim))
            m.moved += 4 * half * len(rows)
            for keys in _steps(shape.kv_seq, t):
                if not m.sees_some(rows, keys):
                    continue
                values = m.v[keys.start : keys.stop, columns]
                m.moved += values.size * m.element
                for row in rows:
                    seen = [key for key in keys if m.sees(row, key)]
                    m.moved += 4 * len(seen)
                    o[row, columns] += scores[row, seen] @ values[[key - keys.start for key in seen]]
            m.moved += o[rows.start : rows.stop, columns].size * m.element
    return np.divide(o, sums[:, None], out=np.zeros(o.shape), where=sums[:, None] != 0)


def _head(case: Case, data: dict[str, Array], head: int) -> Memory:
    shape = AttentionShape.of(case)
    k, v = (shape.compact(data[name])[head // shape.group].astype(np.float64) for name in "kv")
    added = np.zeros((shape.seq, shape.kv_seq))
    if shape.mask == "additive":
        added += data["mask"]
    elif shape.mask == "boolean":
        for row, key in np.ndindex(added.shape):
            if not int(data["mask"][row, key // 32]) >> key % 32 & 1:
                added[row, key] = -np.inf
    return Memory(shape, data["q"].dtype.itemsize, data["q"][head].astype(np.float64), k, v, added)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: " ".join(f"{k}={v}" for k, v in w.items()))
@pytest.mark.parametrize(
    ("kernel", "axes"),
    [
        (FLASH, {"tile": "8x8"}),
        (FLASH, {"tile": "32x16", "precision": "fp16_storage", "rows": 2}),
        (NAIVE, {"tile": "8x8"}),
        (NAIVE, {"tile": "16x16", "api": "vulkan", "precision": "fp16"}),
    ],
    ids=["flash-8x8", "flash-32x16", "naive-8x8", "naive-16x16"],
)
def test_modelled_traffic_is_what_a_counting_loop_nest_moves(
    kernel: AttentionKernel, axes: dict[str, AxisValue], workload: dict[str, AxisValue]
) -> None:
    case = make_case(kernel, workload, axes=axes)
    assert kernel.invalid(case) is None
    data, shape = dict(kernel.inputs(case)), AttentionShape.of(case)
    heads = [_head(case, data, head) for head in range(shape.heads)]
    got = np.stack([(_flash if kernel is FLASH else _naive)(case, m) for m in heads])
    np.testing.assert_allclose(got, kernel.reference(case, data)["o"], rtol=1e-9, atol=1e-12)
    cost = kernel.cost(case)
    assert cost.bytes_moved == sum(m.moved for m in heads)
    assert {len(kernel.passes(case))} == {m.dispatches for m in heads}
    every = [(i, j) for i in range(shape.seq) for j in range(shape.kv_seq) if heads[0].sees(i, j)]
    assert cost.flops == 4 * shape.heads * shape.head_dim * len(every)
    needed = 2 * shape.q_count + 2 * shape.kv_heads * shape.head_dim * len({j for _, j in every})
    masked = {"none": 0, "additive": len(every) * heads[0].element}
    words = 4 * len({(i, j // 32) for i, j in every})
    assert cost.bytes_min == needed * heads[0].element + masked.get(shape.mask, words)
