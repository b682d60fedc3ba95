"""attention_naive: three passes with all scores in memory; the baseline that speed-ups refer to.

scores (s = scale·q kᵀ) → softmax (in place) → weighted (o = p·v). Tile ``TxT`` is the block of scores, and of
output words, that a T×T workgroup computes. With ``pad`` 1 every row of a tile in shared memory is a word
longer than its content, so that its columns lie in different banks. Blocks of scores that causality or a
window hides from all of their rows are neither computed nor read.

The scratch buffer ``scores`` is fp32 in every precision: logits need more range and digits than fp16 has.
With 16-bit arithmetic the weights are not normalised before pass 3, which divides by the scratch buffer
``sums``: normalised weights of many keys would be fp16 subnormals.
"""

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Axis, Buffer, Cost, Pass
from orchestrator.ops.attention import COMMON_AXES, MASK_WORD_BYTES, AttentionKernel, AttentionShape
from orchestrator.ops.attention_glsl import (
    Words,
    ceil_div,
    mask_binding,
    shader_context,
    shape_constants,
)
from orchestrator.ops.attention_shape import EXTRAS
from orchestrator.ops.halves import computes_in_half, element_bytes

SOFTMAX_LANES = 64
SCORE_BYTES = 4


class AttentionNaive(AttentionKernel):
    name = "attention_naive"
    axes = (
        *COMMON_AXES,
        Axis("tile", ("8x8", "16x16", "32x32"), default="16x16"),
        Axis("layout", ("row", "column"), default="column"),
        Axis("vector", (1, 4), default=1),
        Axis("pad", (0, 1), default=0),
    )
    online = False
    extras = frozenset(EXTRAS)

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        shape = AttentionShape.of(case)
        scores = Buffer("scores", "scratch", "f32", shape.heads * shape.seq * shape.kv_seq)
        found = (*super().buffers(case), scores)
        if computes_in_half(case):
            found = (*found, Buffer("sums", "scratch", "f32", shape.heads * shape.seq))
        return found

    def passes(self, case: Case) -> tuple[Pass, ...]:
        shape, words = AttentionShape.of(case), Words.of(case)
        t = tile_of(case)
        chunk = min(t, words.units)
        pad = int(case.axes["pad"])
        # Words of shared memory: keys by chunks, or transposed; padding follows each row of a tile.
        q_words = t * (chunk + pad)
        k_words = q_words if case.axes["layout"] == "row" else chunk * (t + pad)
        context = {**shader_context(case), "t": t, "chunk": chunk, "q_words": q_words, "k_words": k_words}
        row_blocks = ceil_div(shape.seq, t)
        sums = ("sums",) if computes_in_half(case) else ()
        constants = shape_constants(case)
        return (
            Pass(
                template="scores.comp.j2",
                workgroup=(t, t, 1),
                grid=(ceil_div(shape.kv_seq, t), row_blocks, shape.heads),
                shared_bytes=(q_words + k_words) * words.nbytes,
                buffers=("q", "k", "scores", *mask_binding(case)),
                context=context,
                constants=constants,
            ),
            Pass(
                template="softmax.comp.j2",
                workgroup=(SOFTMAX_LANES, 1, 1),
                grid=(shape.seq, shape.heads, 1),
                shared_bytes=SOFTMAX_LANES * SCORE_BYTES,
                buffers=("scores", *sums),
                context=context,
                constants=constants,
            ),
            Pass(
                template="weighted.comp.j2",
                workgroup=(t, t, 1),
                grid=(ceil_div(words.units, t), row_blocks, shape.heads),
                shared_bytes=t * (t + pad) * (SCORE_BYTES + words.nbytes),
                buffers=("scores", "v", "o", *sums),
                context=context,
                constants=constants,
            ),
        )

    def cost(self, case: Case) -> Cost:
        """Model: no cache between workgroups; a softmax row stays in cache while its workgroup works on it.

        Scores, in blocks of T×T of which some row sees some key: q, k and the mask read, s written. Softmax:
        s read and p written where causality and a window show a key. Weighted: p read there once a block of
        T output words, v once a block of T rows, o written. With 16-bit arithmetic a row's sum is written,
        and read once a block of output words. Query heads that share a key/value head, and all heads that
        share the mask, are taken to share nothing.
        """
        shape, words = AttentionShape.of(case), Words.of(case)
        t = tile_of(case)
        word_blocks = ceil_div(words.units, t)
        tile_rows = sum(rows * tiles for rows, tiles in shape.row_blocks(t, t))
        elements = (tile_rows + 2 * shape.keys_read(t, t) + shape.seq) * shape.head_dim
        scores = shape.pairs_read(t, t) + shape.pairs * (2 + word_blocks)
        if computes_in_half(case):
            scores += shape.seq * (1 + word_blocks)
        # A block's row has one word of a boolean mask: T divides 32.
        mask = tile_rows * MASK_WORD_BYTES if shape.mask == "boolean" else self.mask_bytes(case, t, t)
        one_head = elements * element_bytes(case) + scores * SCORE_BYTES + mask
        return Cost(
            flops=self.flops(case),
            bytes_min=self.compulsory_bytes(case),
            bytes_moved=shape.heads * one_head,
        )


def tile_of(case: Case) -> int:
    """T."""
    return int(str(case.axes["tile"]).split("x")[0])


kernel = AttentionNaive()
