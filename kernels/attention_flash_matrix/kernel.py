"""attention_flash_matrix: online softmax whose two products run on matrix units (cooperative matrices).

A subgroup of 32 owns ``blocks`` times 16 query rows: their q, output, running maximum and sum live in
matrices of 16x16. Tile ``BRxBC`` is BR rows a workgroup, BC keys a tile in shared memory. Which invocation
holds which element of a matrix is the driver's secret, so nothing here depends on it: row maxima and masks
go through shared memory, and elements of equal types meet only their own kind.

Weights are rounded to fp16 on their way into the second product, and scaled by 2^7 so that small ones keep
their digits; a row's maximum is followed once it has grown by 2^7. Everything is summed in fp32.
Rows of head_dim elements are padded with zeros to whole matrices. Windows and masks are refused: places of
elements are not known, so each tile's mask would go through shared memory.
"""

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Axis, Cost, Pass, Subgroups
from orchestrator.ops.attention import AttentionKernel, AttentionShape, tile_of
from orchestrator.ops.attention_glsl import ceil_div, shape_constants

SIDE = 16
"""Rows, columns and depth of a matrix."""
MATRIX = "16x16x16 f16 f16 f32 f32"
SUBGROUP = 32
WORD = 8
"""Halves in a uvec4, by which shared memory is filled."""
LOG2_E = 1.4426950408889634


class AttentionFlashMatrix(AttentionKernel):
    name = "attention_flash_matrix"
    axes = (
        Axis("api", ("vulkan",), default="vulkan"),
        Axis("precision", ("fp16_storage",), default="fp16_storage"),
        Axis("halves", ("native",), default="native"),
        Axis("hint", ("highp",), default="highp"),
        Axis("tile", ("16x16", "32x16", "32x32", "64x32", "64x64", "128x32", "128x64"), default="128x64"),
        Axis("blocks", (1, 2), default=1),
    )
    online = True
    half_weights = True
    extras = frozenset({"align", "kv_rows", "kv_order"})

    def invalid(self, case: Case) -> str | None:
        br, _ = tile_of(case)
        rows = SIDE * int(case.axes["blocks"])
        if br % rows:
            return f"blocks {case.axes['blocks']} needs tiles of {rows} rows, not {br}"
        return super().invalid(case)

    def features(self, case: Case) -> frozenset[str]:
        subgroups = {"subgroup_basic", "subgroup_arithmetic", "subgroup_shuffle"}
        return super().features(case) | subgroups | {"cooperative_matrix"}

    def matrices(self, case: Case) -> frozenset[str]:
        del case
        return frozenset({MATRIX})

    def passes(self, case: Case) -> tuple[Pass, ...]:
        shape = AttentionShape.of(case)
        br, bc = tile_of(case)
        blocks = int(case.axes["blocks"])
        warps = br // (SIDE * blocks)
        words = ceil_div(shape.head_dim, SIDE) * SIDE // WORD
        stride = words + 1  # an odd number of words: neighbouring rows lie in different banks
        p_stride = bc // WORD + 1
        context = {
            "head_dim": shape.head_dim,
            "heads": shape.heads,
            "group": shape.group,
            "causal": shape.causal,
            "diagonal": "0" if shape.align == "top_left" else "KV_SEQ - SEQ",
            "kv_heads": shape.kv_heads,
            "kv_rows": "KV_SEQ" if shape.allocated == shape.kv_seq else "KV_ROWS",
            "kv_order": shape.kv_order,
            "log2_scale": f"{shape.scale * LOG2_E:.9g}",
            "br": br,
            "bc": bc,
            "blocks": blocks,
            "warps": warps,
            "words": words,
            "stride": stride,
            "p_stride": p_stride,
            "aligned": shape.head_dim % WORD == 0,
        }
        return (
            Pass(
                template="matrix.comp.j2",
                workgroup=(warps * SUBGROUP, 1, 1),
                grid=(ceil_div(shape.seq, br), shape.heads, 1),
                shared_bytes=16 * (bc * stride + warps * SIDE * (p_stride + SIDE // 4 + 1)),
                buffers=("q", "k", "v", "o"),
                context=context,
                constants=shape_constants(case),
                subgroups=Subgroups(SUBGROUP, warps),
            ),
        )

    def cost(self, case: Case) -> Cost:
        """Traffic as of attention_flash. Padding is neither read nor counted, in bytes or in flops."""
        return self.tiled_cost(case, q_elements=AttentionShape.of(case).q_count)


kernel = AttentionFlashMatrix()
