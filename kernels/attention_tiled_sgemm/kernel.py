"""attention_tiled_sgemm: the loop over tiles of keys runs on the host, as in the RenderScript text.

For each tile of BC keys three dispatches: ``scores`` (an SGEMM, scale · q kᵀ, into a scratch tile [heads,
seq, BC]), ``softmax`` (online: weights in place; running maximum, running sum and the factor by which a grown
maximum shrinks what was summed before, each *per query row*) and ``weighted`` (an SGEMM, acc = acc · factor +
p · v, in fp32). A last dispatch, ``finish``, divides by the sum. The text keeps one maximum and one sum for a
whole tile of rows: its rows come out divided by the weights of all of them (a mutant here, and killed).

Four programs serve all dispatches: the number of the tile is a value of the dispatch (decision 0019). No pass
binds more than four buffers, which is all that GLES 3.1 promises.

Both SGEMMs: a workgroup computes BM×BN by chunks of BK through shared memory (axis ``block``), an invocation
4×4 of it in registers. A tile that no row of a block sees is skipped by that block, and by the host where no
row at all sees it. 16-bit inputs are widened when they are loaded: scratch and shared memory are fp32.

Against the fused kernels (attention_flash) it moves the tile of scores four times and the accumulator twice a
tile; against attention_naive its scratch is seq·BC a head, not seq·kv_seq.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Axis, Buffer, Cost, Pass
from orchestrator.ops.attention import AttentionKernel, AttentionShape
from orchestrator.ops.attention_glsl import (
    Words,
    ceil_div,
    mask_binding,
    shader_context,
    shape_constants,
)
from orchestrator.ops.attention_shape import EXTRAS, WORD_KEYS
from orchestrator.ops.halves import element_bytes

WORD_BYTES = 16
"""Scratch and tiles in shared memory are words of four fp32."""
FLOAT_BYTES = 4
LANES = 64
"""Invocations of a workgroup that is no SGEMM."""
STATE = 3
"""Numbers of a query row between dispatches: maximum, sum, factor."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes of a case."""

    bm: int
    bn: int
    bk: int
    bc: int
    """Keys of a tile."""
    units: int
    """Words of a row of q, k, v, acc and o."""

    @classmethod
    def of(cls, case: Case) -> "Geometry":
        bm, bn, bk = (int(size) for size in str(case.axes["block"]).split("x"))
        return cls(bm, bn, bk, int(case.axes["tile"]), Words.of(case).units)

    @property
    def workgroup(self) -> tuple[int, int, int]:
        return (self.bm * self.bn // 16, 1, 1)

    @property
    def row_stride(self) -> int:
        """Words from one step of a chunk to the next; the odd one spreads banks."""
        return self.bm // 4 + 1

    @property
    def column_stride(self) -> int:
        return self.bn // 4 + 1

    @property
    def shared_bytes(self) -> int:
        return self.bk * (self.row_stride + self.column_stride) * WORD_BYTES

    @property
    def lanes(self) -> int:
        """Invocations that share a row in ``softmax``."""
        return min(LANES, self.bc // 4)

    @property
    def column_blocks(self) -> int:
        """Workgroups side by side in ``weighted``."""
        return ceil_div(self.units * 4, self.bn)

    def tiles(self, shape: AttentionShape) -> range:
        """Numbers of the tiles of which some row sees a key; never none."""
        return range(shape.first(0) // self.bc, ceil_div(shape.visible(shape.seq - 1), self.bc))

    def seen(self, shape: AttentionShape, tile: int, top: int, bottom: int) -> tuple[int, int]:
        """The first key of a tile, counted from its own first one, that rows ``top`` to ``bottom - 1`` see,
        and one past the last one; equal where they see none."""
        start = tile * self.bc
        first = min(self.bc, max(0, shape.first(top) - start))
        return first, max(first, min(self.bc, shape.visible(bottom - 1) - start))


class AttentionTiledSgemm(AttentionKernel):
    name = "attention_tiled_sgemm"
    axes = (
        Axis("api", ("gles", "vulkan"), default="gles"),
        Axis("precision", ("fp32", "fp16_storage"), default="fp32"),
        Axis("halves", ("packed",), default="packed"),
        Axis("hint", ("highp", "mediump", "precise"), default="highp"),
        Axis("tile", (16, 32, 64, 128, 256, 512), default=64),
        Axis("block", ("16x16x16", "32x32x16", "64x64x16"), default="32x32x16"),
        Axis("vector", (4,), default=4),
    )
    online = True
    extras = frozenset(EXTRAS)

    def tile_sums(self, case: Case) -> int:
        return int(case.axes["tile"])

    def invalid(self, case: Case) -> str | None:
        g = Geometry.of(case)
        if g.bc % g.bn:
            return f"block {g.bm}x{g.bn} does not divide tile {g.bc}"
        return super().invalid(case)

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        shape, g = AttentionShape.of(case), Geometry.of(case)
        rows = shape.heads * shape.seq
        return (
            *super().buffers(case),
            Buffer("scores", "scratch", "f32", rows * g.bc),
            Buffer("state", "scratch", "f32", STATE * rows),
            Buffer("acc", "scratch", "f32", rows * g.units * 4),
        )

    def passes(self, case: Case) -> tuple[Pass, ...]:
        shape, g = AttentionShape.of(case), Geometry.of(case)
        shared: dict[str, object] = {
            **shader_context(case),
            "bm": g.bm,
            "bn": g.bn,
            "bk": g.bk,
            "bc": g.bc,
            "row_stride": g.row_stride,
            "column_stride": g.column_stride,
            "lanes": g.lanes,
        }
        constants = shape_constants(case)
        tiles = g.tiles(shape)
        steps = [step for tile in tiles for step in _tile_passes(case, tile, shared, constants)]
        finish = Pass(
            template="finish.comp.j2",
            workgroup=(LANES, 1, 1),
            grid=(ceil_div(shape.seq * g.units, LANES), shape.heads, 1),
            shared_bytes=0,
            buffers=("acc", "state", "o"),
            context=shared,
            constants=constants,
        )
        return (*steps, finish)

    def cost(self, case: Case) -> Cost:
        """Model: no cache between workgroups; what a workgroup reads twice it reads once. Query heads that
        share a key/value head are taken to share nothing."""
        shape = AttentionShape.of(case)
        moved = sum(_scores_bytes(case)) + sum(_tile_bytes(case)) + _finish_bytes(case)
        return Cost(
            flops=self.flops(case),
            bytes_min=self.compulsory_bytes(case),
            bytes_moved=shape.heads * moved,
        )


def _scores_bytes(case: Case) -> Iterator[int]:
    """Of one head: ``scores`` of all tiles. q once a block of BN keys, k and what the mask says about each
    row once a block of BM rows, scores written."""
    shape, g = AttentionShape.of(case), Geometry.of(case)
    for top in range(0, shape.seq, g.bm):
        bottom = min(top + g.bm, shape.seq)
        rows, first, end = bottom - top, shape.first(top), shape.visible(bottom - 1)
        for start in range(first // g.bn * g.bn, end, g.bn) if end > first else ():
            keys = min(g.bn, shape.kv_seq - start)
            yield (rows + keys) * shape.head_dim * element_bytes(case)
            yield rows * g.bn * FLOAT_BYTES
            yield rows * _mask_bytes(case, start, keys)


def _mask_bytes(case: Case, start: int, keys: int) -> int:
    """Of one row."""
    mask = AttentionShape.of(case).mask
    if mask == "boolean":
        return (ceil_div(start + keys, WORD_KEYS) - start // WORD_KEYS) * FLOAT_BYTES
    return keys * element_bytes(case) if mask == "additive" else 0


def _tile_passes(
    case: Case, tile: int, context: dict[str, object], constants: dict[str, int]
) -> tuple[Pass, Pass, Pass]:
    shape, g = AttentionShape.of(case), Geometry.of(case)
    keys = min(g.bc, shape.kv_seq - tile * g.bc)
    row_blocks = ceil_div(shape.seq, g.bm)
    later = {"TILE": tile, "FIRST": int(tile == g.tiles(shape).start)}
    scores = Pass(
        template="scores.comp.j2",
        workgroup=g.workgroup,
        grid=(ceil_div(keys, g.bn), row_blocks, shape.heads),
        shared_bytes=g.shared_bytes,
        buffers=("q", "k", "scores", *mask_binding(case)),
        context=context,
        constants=constants,
        values={"TILE": tile},
    )
    softmax = Pass(
        template="softmax.comp.j2",
        workgroup=(LANES, 1, 1),
        grid=(ceil_div(shape.seq, LANES // g.lanes), shape.heads, 1),
        shared_bytes=LANES * FLOAT_BYTES,
        buffers=("scores", "state"),
        context=context,
        constants=constants,
        values=later,
    )
    weighted = Pass(
        template="weighted.comp.j2",
        workgroup=g.workgroup,
        grid=(g.column_blocks, row_blocks, shape.heads),
        shared_bytes=g.shared_bytes,
        buffers=("v", "scores", "state", "acc"),
        context=context,
        constants=constants,
        values=later,
    )
    return scores, softmax, weighted


def _tile_bytes(case: Case) -> Iterator[int]:
    """Of one head: ``softmax`` and ``weighted`` of each tile.

    Softmax: the words of scores that a row sees read and written as weights, maximum and sum read, all three
    numbers of the row written. Weighted: those words again once a block of BN columns, v once a block of BM
    rows, the factor once a row and block of columns, acc read and written. The first tile reads neither
    numbers of rows nor acc.
    """
    shape, g = AttentionShape.of(case), Geometry.of(case)
    tiles = g.tiles(shape)
    for tile in tiles:
        first = tile == tiles.start
        for top in range(0, shape.seq, g.bm):
            bottom = min(top + g.bm, shape.seq)
            words = 0
            for row in range(top, bottom):
                begin, end = g.seen(shape, tile, row, row + 1)
                words += ceil_div(end, 4) - begin // 4 if end > begin else 0
            yield 2 * words * WORD_BYTES
            yield (bottom - top) * (STATE if first else 2 + STATE) * FLOAT_BYTES
            begin, end = g.seen(shape, tile, top, bottom)
            if end > begin or first:
                yield g.column_blocks * words * WORD_BYTES
                values = end - begin // g.bk * g.bk if end > begin else 0
                yield values * shape.head_dim * element_bytes(case)
                acc = (bottom - top) * g.units * WORD_BYTES
                factors = (bottom - top) * g.column_blocks * FLOAT_BYTES
                yield acc if first else 2 * acc + factors


def _finish_bytes(case: Case) -> int:
    """Of one head: acc and the sum of each row read, o written."""
    shape, g = AttentionShape.of(case), Geometry.of(case)
    row = g.units * WORD_BYTES + FLOAT_BYTES + shape.head_dim * element_bytes(case)
    return shape.seq * row


kernel = AttentionTiledSgemm()
