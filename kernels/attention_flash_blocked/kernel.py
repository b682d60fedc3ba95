"""attention_flash_blocked: online softmax, a block of logits and of outputs in an invocation's registers.

An invocation owns ``rows`` query rows × KEYS keys of the logits of a tile, and the same rows × its share of
head_dim of the output: both are sums of outer products of vectors that come from shared memory, transposed
there, so that a value read serves 8 rows or keys. ``BC / KEYS`` neighbouring invocations (*lanes*) share
their rows. q and K go through shared memory in chunks of ``chunk`` dimensions, V in chunks of as many keys.

Axes: ``tile`` BRxBC; ``rows`` of an invocation; ``chunk``; ``unroll``: full writes chunks out as text and
loads the next chunk into registers before it computes the last one, short keeps loops, for drivers that
compile on the processor (minutes for the full text on llvmpipe); ``subgroup``: 0 finds maxima and sums of a
row through shared memory, a number through shuffles in subgroups of exactly so many invocations.

Shared memory decides how many workgroups a multiprocessor holds. Measured on an H200 (Vulkan, driver
580.159.04, a micro benchmark with the same loops): about 53 KB for all workgroups, each of which takes 1 KB
more than it asks for. So four workgroups up to 12 KB, three up to 16 KB, two up to 25.6 KB, else one. Two
are worth having: ``128x64`` with chunk 16 takes 20.5 KB at head_dim 64. ``64x64`` fits the 16 KB of a phone.
"""

from dataclasses import dataclass, replace

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Axis, Cost, Pass, Subgroups
from orchestrator.ops.attention import AttentionKernel, AttentionShape, tile_of
from orchestrator.ops.attention_glsl import ceil_div, shader_context, shape_constants

KEYS = 8
"""Of an invocation in a tile: two words of four."""

UNROLLED_DIMENSIONS = 64
"""Of q·k as text at once. The H200 fell to less than half its speed where a shader was over about 128 KB."""

WAVE = 32
"""Invocations whose rows lie next to each other in a tile; a matter of banks, not of correctness."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes of a case; words are of four fp32."""

    br: int
    bc: int
    rows: int
    chunk: int
    units: int
    """Words of a row of q, k, v and o."""

    @classmethod
    def of(cls, case: Case) -> "Geometry":
        br, bc = tile_of(case)
        units = ceil_div(AttentionShape.of(case).head_dim, 4)
        return cls(br, bc, int(case.axes["rows"]), int(case.axes["chunk"]), units)

    @property
    def lanes(self) -> int:
        """Invocations that share rows."""
        return self.bc // KEYS

    @property
    def span(self) -> int:
        """Neighbouring invocations within which all lanes of a row are found: two row groups interleave."""
        return 2 * self.lanes

    @property
    def invocations(self) -> int:
        return self.br // self.rows * self.lanes

    @property
    def wave_groups(self) -> int:
        """Groups of rows in a wave: the distance of an invocation's words of rows."""
        return min(WAVE // self.lanes, self.br // self.rows)

    @property
    def words(self) -> int:
        """Of the output row, in one invocation; the last ones may lie past head_dim."""
        return ceil_div(self.units, self.lanes)

    @property
    def chunks(self) -> int:
        """Of head_dim."""
        return ceil_div(self.units * 4, self.chunk)

    @property
    def half(self) -> int:
        """Keys whose weights lie in shared memory at once: half a tile."""
        return self.bc // 2

    @property
    def value_rows(self) -> int:
        """Keys whose values do."""
        return min(self.chunk, self.half)

    @property
    def row_stride(self) -> int:
        """Words from one dimension, or key, to the next one; the odd one spreads banks."""
        return self.br // 4 + 1

    @property
    def key_stride(self) -> int:
        return self.bc // 4 + 1

    @property
    def shared_words(self) -> int:
        """q and K of a chunk; in the same place afterwards maxima, then weights and values."""
        logits = self.chunk * (self.row_stride + self.key_stride)
        weighted = self.half * self.row_stride + self.value_rows * self.words * self.lanes
        return max(logits, weighted)


class AttentionFlashBlocked(AttentionKernel):
    name = "attention_flash_blocked"
    axes = (
        Axis("api", ("gles", "vulkan"), default="gles"),
        Axis("precision", ("fp32", "fp16_storage"), default="fp32"),
        Axis("halves", ("packed",), default="packed"),
        Axis("hint", ("highp",), default="highp"),
        Axis("tile", ("16x16", "32x32", "64x64", "128x64", "64x128", "128x128"), default="64x64"),
        Axis("rows", (4, 8), default=4),
        Axis("chunk", (8, 16, 32), default=16),
        Axis("unroll", ("full", "short"), default="full"),
        Axis("subgroup", (0, 4, 8, 16, 32, 64), default=0),
    )
    online = True

    def invalid(self, case: Case) -> str | None:
        geometry, subgroup = Geometry.of(case), int(case.axes["subgroup"])
        if subgroup and case.axes["api"] != "vulkan":
            return f"subgroup {subgroup} needs api vulkan; GLSL ES 3.10 has none"
        if subgroup and subgroup < geometry.span:
            holds = f"{geometry.span} invocations that hold a row of tile {case.axes['tile']}"
            return f"subgroup {subgroup} < {holds}"
        if subgroup and geometry.invocations % subgroup:
            return f"subgroup {subgroup} does not divide {geometry.invocations} invocations"
        return super().invalid(case)

    def features(self, case: Case) -> frozenset[str]:
        shuffles = {"subgroup_basic", "subgroup_shuffle"} if case.axes["subgroup"] else set[str]()
        return super().features(case) | shuffles

    def passes(self, case: Case) -> tuple[Pass, ...]:
        shape, g = AttentionShape.of(case), Geometry.of(case)
        subgroup = int(case.axes["subgroup"])
        context = {
            **shader_context(replace(case, axes={**case.axes, "vector": 4})),
            "br": g.br,
            "bc": g.bc,
            "rows": g.rows,
            "lanes": g.lanes,
            "span": g.span,
            "masks": [1, *(4 << bit for bit in range(g.lanes.bit_length() - 2))],
            "wave_groups": g.wave_groups,
            "words": g.words,
            "chunk": g.chunk,
            "chunks": g.chunks,
            "at_once": _chunks_at_once(g),
            "half_tile": g.half,
            "value_rows": g.value_rows,
            "row_stride": g.row_stride,
            "key_stride": g.key_stride,
            "shared_words": g.shared_words,
            "full": case.axes["unroll"] == "full",
            "ragged": shape.seq % g.br != 0,
            "partial": shape.kv_seq % g.bc != 0,
            "masked": shape.causal or shape.kv_seq % g.bc != 0,
        }
        return (
            Pass(
                template="blocked.comp.j2",
                workgroup=(g.invocations, 1, 1),
                grid=(ceil_div(shape.seq, g.br), shape.heads, 1),
                shared_bytes=16 * g.shared_words,
                buffers=("q", "k", "v", "o"),
                context=context,
                constants=shape_constants(case),
                subgroups=Subgroups(subgroup, g.invocations // subgroup) if subgroup else None,
            ),
        )

    def cost(self, case: Case) -> Cost:
        """Nor is there a cache between the tiles of one workgroup: every block of rows reads its own rows of
        q again for each tile of keys that it sees.
        """
        shape = AttentionShape.of(case)
        rows_read = sum(rows * tiles for rows, tiles in shape.row_blocks(*tile_of(case)))
        return self.tiled_cost(case, q_elements=rows_read * shape.head_dim * shape.heads)


def _chunks_at_once(g: Geometry) -> int:
    """Chunks of head_dim written out where ``unroll`` is full: all of them, or one or two a loop's round."""
    if g.chunks * g.chunk <= UNROLLED_DIMENSIONS:
        return g.chunks
    return 2 if g.chunks % 2 == 0 else 1


kernel = AttentionFlashBlocked()
