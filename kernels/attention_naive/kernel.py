"""attention_naive: three passes with all scores in memory; the baseline that speed-ups refer to.

scores (s = scale·q kᵀ) → softmax (in place) → weighted (o = p·v). Tile ``TxT`` is the block of scores, and of
output words, that a T×T workgroup computes. The scratch buffer ``scores`` is fp32 in every precision: logits
need more range and digits than fp16 has. With 16-bit arithmetic the weights are not normalised before pass 3,
which divides by the scratch buffer ``sums``: normalised weights of many keys would be fp16 subnormals.
"""

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Axis, Buffer, Cost, Pass
from orchestrator.ops.attention import COMMON_AXES, AttentionKernel, AttentionShape
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
        context = {**shader_context(case), "t": t, "chunk": chunk}
        row_blocks = ceil_div(shape.seq, t)
        sums = ("sums",) if computes_in_half(case) else ()
        constants = shape_constants(case)
        return (
            Pass(
                template="scores.comp.j2",
                workgroup=(t, t, 1),
                grid=(ceil_div(shape.kv_seq, t), row_blocks, shape.heads),
                shared_bytes=2 * t * chunk * words.nbytes,
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
                shared_bytes=t * t * (SCORE_BYTES + words.nbytes),
                buffers=("scores", "v", "o", *sums),
                context=context,
                constants=constants,
            ),
        )

    def cost(self, case: Case) -> Cost:
        """Model: no cache between workgroups; a softmax row stays in cache while its workgroup works on it.

        Scores: q once a block of T keys, k once a block of T rows, s written. Softmax: s read, p written.
        Weighted: p read once a block of T output words, v once a block of T rows, o written. Masked
        scores are moved like others. Query heads that share a key/value head are taken to share nothing.
        """
        shape, words = AttentionShape.of(case), Words.of(case)
        t = tile_of(case)
        row_blocks, key_blocks = ceil_div(shape.seq, t), ceil_div(shape.kv_seq, t)
        kv_row_elements = shape.heads * shape.kv_seq * shape.head_dim
        elements = shape.q_count * (key_blocks + 1) + 2 * kv_row_elements * row_blocks
        scores = shape.heads * shape.seq * shape.kv_seq * (3 + ceil_div(words.units, t))
        return Cost(
            flops=self.flops(case),
            bytes_min=self.compulsory_bytes(case),
            bytes_moved=elements * element_bytes(case) + scores * SCORE_BYTES,
        )


def tile_of(case: Case) -> int:
    """T."""
    return int(str(case.axes["tile"]).split("x")[0])


kernel = AttentionNaive()
