"""attention_flash: one dispatch, online softmax, K and V tiles in shared memory, scores in registers.

One invocation owns one query row: its q, its output and its running maximum and sum live in registers.
Tile ``BRxBC`` is BR rows (= invocations) a workgroup, BC keys a tile in shared memory. ``vector`` 4 moves and
unrolls head_dim four elements at a time and takes four keys at a time; 1 keeps real loops over head_dim
(the plain formulation, which some drivers get wrong; see docs/numerics.md).

``pad`` 1 makes every row of a tile in shared memory a word longer than its content, so that neighbouring rows
begin in different banks.

``rows`` above 1 blocks registers: that many neighbouring invocations share as many rows and split head_dim,
so that a word read from shared memory serves them all; partial logits are summed through shared memory.
"""

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Axis, Cost, Pass
from orchestrator.ops.attention import COMMON_AXES, AttentionKernel, AttentionShape, tile_of
from orchestrator.ops.attention_glsl import (
    Words,
    ceil_div,
    mask_binding,
    shader_context,
    shape_constants,
)
from orchestrator.ops.attention_shape import EXTRAS

KEYS_AT_A_TIME = {1: 1, 4: 4}
"""Of a tile, for each value of ``vector``: independent sums that hide the latency of each other."""

KEYS_A_STEP = 8
"""Keys whose logits are exchanged at once where rows are shared."""


class AttentionFlash(AttentionKernel):
    name = "attention_flash"
    axes = (
        *COMMON_AXES,
        Axis(
            "tile",
            ("8x8", "16x16", "32x16", "32x32", "64x8", "64x16", "64x32", "128x16", "128x32"),
            default="128x16",
        ),
        Axis("layout", ("row", "column"), default="row"),
        Axis("vector", (1, 4), default=4),
        Axis("rows", (1, 2, 4), default=1),
        Axis("pad", (0, 1), default=0),
    )
    online = True
    extras = frozenset(EXTRAS)

    def invalid(self, case: Case) -> str | None:
        if case.axes["rows"] != 1 and (case.axes["vector"], case.axes["layout"]) != (4, "row"):
            return f"rows {case.axes['rows']} needs vector 4 and layout row"
        return super().invalid(case)

    def passes(self, case: Case) -> tuple[Pass, ...]:
        return (self._blocked_pass(case) if case.axes["rows"] != 1 else self._row_pass(case),)

    def _row_pass(self, case: Case) -> Pass:
        shape, words = AttentionShape.of(case), Words.of(case)
        br, bc = tile_of(case)
        pad = int(case.axes["pad"])
        v_words = bc * (words.units + pad)
        k_words = v_words if case.axes["layout"] == "row" else words.units * (bc + pad)
        context = {
            **shader_context(case),
            "br": br,
            "bc": bc,
            "k_words": k_words,
            "v_words": v_words,
            "keys": KEYS_AT_A_TIME[int(case.axes["vector"])],
            "partial": shape.kv_seq % bc != 0,
            "hides": shape.hides(bc),
        }
        return Pass(
            template="flash.comp.j2",
            workgroup=(br, 1, 1),
            grid=(ceil_div(shape.seq, br), shape.heads, 1),
            shared_bytes=(k_words + v_words) * words.nbytes,
            buffers=("q", "k", "v", "o", *mask_binding(case)),
            context=context,
            constants=shape_constants(case),
        )

    def _blocked_pass(self, case: Case) -> Pass:
        shape, words = AttentionShape.of(case), Words.of(case)
        br, bc = tile_of(case)
        rows = int(case.axes["rows"])
        share = ceil_div(words.units, rows)
        stride = share * rows + int(case.axes["pad"])
        groups = KEYS_A_STEP // 4
        context = {
            **shader_context(case),
            "br": br,
            "bc": bc,
            "rows": rows,
            "keys": KEYS_A_STEP,
            "per": share,
            "stride": stride,
            "hides": shape.hides(bc),
        }
        tiles = 2 * bc * stride * words.nbytes
        exchanged = 16 * groups * br * (rows + 1) + 4 * br
        return Pass(
            template="rows.comp.j2",
            workgroup=(br, 1, 1),
            grid=(ceil_div(shape.seq, br), shape.heads, 1),
            shared_bytes=tiles + exchanged,
            buffers=("q", "k", "v", "o", *mask_binding(case)),
            context=context,
            constants=shape_constants(case),
        )

    def cost(self, case: Case) -> Cost:
        """q is read once, K and V again for every block of BR rows: O(seq·kv_seq/BR) traffic, not O(seq)."""
        return self.tiled_cost(case, q_elements=AttentionShape.of(case).q_count)


kernel = AttentionFlash()
