"""attention_flash_blocked: online softmax, a block of logits and of outputs in an invocation's registers.

An invocation owns ``rows`` query rows × some keys of the logits of a tile, and the same rows × its share of
head_dim of the output: both are sums of outer products of vectors that come from shared memory, transposed
there, so that a value read serves several rows or keys. Neighbouring invocations (*lanes*) share their rows:
``BC / 8`` of them; in fp16 at most 8. q and K go through shared memory in chunks of ``chunk`` words of a row
(dimensions; in fp16 pairs of them), V in chunks of as many keys.

Axes: ``tile`` BRxBC; ``rows`` of an invocation; ``chunk``; ``unroll``: full writes chunks out as text and
loads the next chunk into registers before it computes the last one, short keeps loops, for drivers that
compile on the processor (minutes for the full text on llvmpipe); ``subgroup``: 0 finds maxima and sums of a
row through shared memory, a number through shuffles in subgroups of exactly so many invocations.

``precision`` fp16 multiplies and adds pairs of halves in one instruction (halves.comp.j2), which gives a sum
two runs in 16 bits: of head_dim/2 products of q and K, and of BC/2 weighted values, after which the output
goes on in fp32. Logits, weights before they are rounded, and their sum are fp32. q stays in shared memory,
and as many weights as then fit ``shared_kib``: 48 on desktop GPUs, 32 on many phones.

Shared memory decides how many workgroups a multiprocessor holds. Measured on an H200 (Vulkan, driver
580.159.04, a micro benchmark with the same loops): about 53 KB for all workgroups, each of which takes 1 KB
more than it asks for. So four workgroups up to 12 KB, three up to 16 KB, two up to 25.6 KB, else one. Two
are worth having: ``128x64`` with chunk 16 takes 20.5 KB at head_dim 64. ``64x64`` fits the 16 KB of a phone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Axis, Cost, Pass, Subgroups
from orchestrator.ops.attention import AttentionKernel, AttentionShape, tile_of
from orchestrator.ops.attention_glsl import ceil_div, mask_binding, shader_context, shape_constants
from orchestrator.ops.attention_shape import EXTRAS
from orchestrator.ops.halves import computes_in_half

KEYS = 8
"""Of an invocation in a tile: two words of four."""

HALF_LANES = 8
"""At most, where pairs of halves are computed: more keys a lane mean fewer runs and rescales."""

UNROLLED_DIMENSIONS = 64
"""Of q·k as text at once. The H200 fell to less than half its speed where a shader was over about 128 KB."""

WAVE = 32
"""Invocations whose rows lie next to each other in a tile; a matter of banks, not of correctness."""

SHARED_KIB = 48
"""Default of ``shared_kib``: what a workgroup may have on desktop GPUs."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes of a case; words are of four fp32."""

    br: int
    bc: int
    rows: int
    chunk: int
    units: int
    """Words of a row of q, k, v and o."""
    limit: int
    """Bytes of shared memory that a workgroup in fp16 fills with weights, as far as they go."""

    @classmethod
    def of(cls, case: Case) -> Self:
        br, bc = tile_of(case)
        units = ceil_div(AttentionShape.of(case).head_dim, 4)
        limit = 1024 * int(case.axes["shared_kib"])
        return cls(br, bc, int(case.axes["rows"]), int(case.axes["chunk"]), units, limit)

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

    def context(self) -> Mapping[str, object]:
        return {
            "chunks": self.chunks,
            "at_once": _chunks_at_once(self),
            "half_tile": self.half,
            "value_rows": self.value_rows,
        }


@dataclass(frozen=True, slots=True)
class HalfGeometry(Geometry):
    """Sizes of a case in fp16; words in shared memory are of four pairs, those of a lane's output of four."""

    @property
    def lanes(self) -> int:
        return min(HALF_LANES, self.bc // KEYS)

    @property
    def keys(self) -> int:
        """Of an invocation in a tile."""
        return self.bc // self.lanes

    @property
    def chunks(self) -> int:
        return ceil_div(self.units * 2, self.chunk)

    @property
    def pairs(self) -> int:
        """Of weights that an invocation has in shared memory at once: the most with which all fits."""
        fitting = [n for n in (4, 2) if 16 * self._shared_words(n) <= self.limit]
        return fitting[0] if fitting else 1

    @property
    def weight_keys(self) -> int:
        return 2 * self.lanes * self.pairs

    @property
    def value_keys(self) -> int:
        """Keys whose values lie there: at least the four of a word of every lane, which are neighbours."""
        return max(self.weight_keys, 4 * self.lanes)

    @property
    def shared_words(self) -> int:
        """q; beside it K of a chunk, and in its place afterwards weights and values."""
        return self._shared_words(self.pairs)

    def _shared_words(self, pairs: int) -> int:
        weights = self.lanes * pairs * self.row_stride
        values = max(self.lanes * pairs, 2 * self.lanes) * self.words * self.lanes
        return self.chunks * self.chunk * self.row_stride + max(
            self.chunk * self.key_stride, weights + values
        )

    def context(self) -> Mapping[str, object]:
        return {
            "chunks": self.chunks,
            "keys": self.keys,
            "q_pairs": self.chunks * self.chunk,
            "pairs": self.pairs,
            "weight_keys": self.weight_keys,
            "value_keys": self.value_keys,
            "value_units": self.words * self.lanes // 2,
            "passes": self.bc // self.weight_keys,
            "passes_staged": self.value_keys // self.weight_keys,
        }


class AttentionFlashBlocked(AttentionKernel):
    name = "attention_flash_blocked"
    axes = (
        Axis("api", ("gles", "vulkan"), default="gles"),
        Axis("precision", ("fp32", "fp16_storage", "fp16"), default="fp32"),
        Axis("halves", ("packed",), default="packed"),
        Axis("hint", ("highp",), default="highp"),
        Axis("tile", ("16x16", "32x32", "64x64", "128x64", "64x128", "128x128"), default="64x64"),
        Axis("rows", (4, 8), default=4),
        Axis("chunk", (8, 16, 32), default=16),
        Axis("unroll", ("full", "short"), default="full"),
        Axis("subgroup", (0, 4, 8, 16, 32, 64), default=0),
        Axis("shared_kib", (16, 32, 48), default=SHARED_KIB),
    )
    online = True
    extras = frozenset(EXTRAS)

    def invalid(self, case: Case) -> str | None:
        geometry, subgroup = _geometry(case), int(case.axes["subgroup"])
        if subgroup and case.axes["api"] != "vulkan":
            return f"subgroup {subgroup} needs api vulkan; GLSL ES 3.10 has none"
        if subgroup and subgroup < geometry.span:
            holds = f"{geometry.span} invocations that hold a row of tile {case.axes['tile']}"
            return f"subgroup {subgroup} < {holds}"
        if subgroup and geometry.invocations % subgroup:
            return f"subgroup {subgroup} does not divide {geometry.invocations} invocations"
        if case.axes["shared_kib"] != SHARED_KIB and not computes_in_half(case):
            return f"shared_kib {case.axes['shared_kib']} decides nothing in {case.axes['precision']}"
        return super().invalid(case) or (_impossible_in_half(case) if computes_in_half(case) else None)

    def half_run(self, case: Case) -> int:
        """Weighted values of two runs, even and odd keys of a tile, are summed in 16 bits."""
        return tile_of(case)[1] // 2 if computes_in_half(case) else 0

    def features(self, case: Case) -> frozenset[str]:
        shuffles = {"subgroup_basic", "subgroup_shuffle"} if case.axes["subgroup"] else set[str]()
        return super().features(case) | shuffles

    def passes(self, case: Case) -> tuple[Pass, ...]:
        shape, g = AttentionShape.of(case), _geometry(case)
        subgroup = int(case.axes["subgroup"])
        context = {
            **shader_context(replace(case, axes={**case.axes, "vector": 4})),
            **g.context(),
            "br": g.br,
            "bc": g.bc,
            "rows": g.rows,
            "lanes": g.lanes,
            "span": g.span,
            "masks": [1, *(4 << bit for bit in range(g.lanes.bit_length() - 2))],
            "wave_groups": g.wave_groups,
            "words": g.words,
            "chunk": g.chunk,
            "row_stride": g.row_stride,
            "key_stride": g.key_stride,
            "shared_words": g.shared_words,
            "full": case.axes["unroll"] == "full",
            "ragged": shape.seq % g.br != 0,
            "partial": shape.kv_seq % g.bc != 0,
            "hides": shape.hides(g.bc),
        }
        return (
            Pass(
                template="halves.comp.j2" if computes_in_half(case) else "blocked.comp.j2",
                workgroup=(g.invocations, 1, 1),
                grid=(ceil_div(shape.seq, g.br), shape.heads, 1),
                shared_bytes=16 * g.shared_words,
                buffers=("q", "k", "v", "o", *mask_binding(case)),
                context=context,
                constants=shape_constants(case),
                subgroups=Subgroups(subgroup, g.invocations // subgroup) if subgroup else None,
            ),
        )

    def cost(self, case: Case) -> Cost:
        """Nor is there a cache between the tiles of one workgroup: every block of rows reads its own rows of
        q again for each tile of keys that it sees; in fp16 once, as they stay in shared memory.
        """
        shape = AttentionShape.of(case)
        if computes_in_half(case):
            return self.tiled_cost(case, q_elements=shape.q_count)
        rows_read = sum(rows * tiles for rows, tiles in shape.row_blocks(*tile_of(case)))
        return self.tiled_cost(case, q_elements=rows_read * shape.head_dim * shape.heads)


def _geometry(case: Case) -> Geometry:
    return HalfGeometry.of(case) if computes_in_half(case) else Geometry.of(case)


def _impossible_in_half(case: Case) -> str | None:
    head_dim = AttentionShape.of(case).head_dim
    if not case.axes["subgroup"]:
        return "precision fp16 needs subgroup: weights stay within one"
    if head_dim % 8:
        return f"precision fp16 reads words of 8 halves; head_dim {head_dim} is no multiple of it"
    return None


def _chunks_at_once(g: Geometry) -> int:
    """Chunks of head_dim written out where ``unroll`` is full: all of them, or one or two a loop's round."""
    if g.chunks * g.chunk <= UNROLLED_DIMENSIONS:
        return g.chunks
    return 2 if g.chunks % 2 == 0 else 1


kernel = AttentionFlashBlocked()
