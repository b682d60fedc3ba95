"""sgemm: a tile of C a workgroup, a block of it in each invocation's registers, A and B in shared memory.

A workgroup makes ``tile`` BMxBN elements of C, an invocation ``block`` TMxTN of them, as a sum of outer
products. ``chunk`` is how many of the k products a tile of A and of B in shared memory holds.

- ``source``: shared, or global: every invocation reads A and B itself; for drivers that run on a processor,
  where shared memory is memory and a barrier is a change of stacks.
- ``layout_a``, ``layout_b``: what lies next to each other in the tiles of shared memory: ``outer``, elements
  of a column of A (of a row of B), so that one 128-bit read serves four rows (columns) of the block; or
  ``inner``, elements along k. Tiles that lie otherwise than their matrix are transposed on their way.
- ``pad``: words of four that follow each line of a tile, against bank conflicts.
- ``vector``: elements that a read or write of memory moves. Rows that are no whole words are moved one by
  one.
- ``pipeline``: plain; prefetch: the next chunk is on its way from memory to registers while this one is
  multiplied; double: and has a tile of its own to go to, which saves one of two barriers a chunk.
- ``unroll``: full writes a chunk out as text; short keeps a loop, for drivers that compile on the processor.
- ``wave``: WMxWN elements of C that neighbouring invocations make; none: rows of invocations from left to
  right.
- ``lanes``: how invocations lie in a wave: plain, or paired: of four neighbours two share rows and two share
  columns.
- ``subgroup``: a wave is a subgroup of exactly so many invocations; 0: waves are counted by invocation index,
  and any size of subgroups will do.
"""

from dataclasses import dataclass

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Axis, Cost, Pass, Subgroups
from orchestrator.ops.gemm import COMMON_AXES, GemmKernel
from orchestrator.ops.gemm_shape import GemmShape
from orchestrator.ops.halves import computes_in_half, element_bytes, is_half, is_native

WORD = 4
"""Elements of a word."""

TILES = (
    *("8x8", "16x16", "32x32", "64x16", "16x32", "16x64", "8x128", "4x256", "32x64", "64x32"),
    *("64x64", "64x128", "128x64", "128x128", "128x256", "256x128"),
)
WAVES = (
    *("none", "8x8", "8x16", "16x16", "16x32", "32x16", "32x32", "16x64", "32x64", "64x32"),
    *("64x64", "16x128", "32x128", "64x128", "128x32", "128x64"),
)
"""With blocks of 4x4, 8x8 is a wave of 4 invocations, 16x32 of 32, 64x64 of 256."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A or B of a case: how it lies in memory and in shared memory. ``outer`` is m for A, n for B."""

    name: str
    outer: int
    """Size of the tile along it."""
    chunk: int
    inner_rows: bool
    """A row in memory runs along k."""
    inner_tile: bool
    """A line of the tile runs along k."""
    pad: int
    wide: bool
    """Rows in memory are whole words, and read so."""
    row: str
    """Length of a row in memory, and number of rows, as the shader calls them."""
    rows: str
    ragged_outer: bool
    """The last tile reaches past the matrix."""
    ragged_inner: bool

    @property
    def words(self) -> int:
        """Of the tile."""
        return self.outer * self.chunk // WORD

    @property
    def row_words(self) -> int:
        """Of one row in memory, those that the tile holds."""
        return (self.chunk if self.inner_rows else self.outer) // WORD

    @property
    def stride(self) -> int:
        """Words from one line of the tile to the next."""
        return (self.chunk if self.inner_tile else self.outer) // WORD + self.pad

    @property
    def shared_words(self) -> int:
        return self.stride * (self.outer if self.inner_tile else self.chunk)

    @property
    def transposed(self) -> bool:
        return self.inner_rows != self.inner_tile

    @property
    def ragged_rows(self) -> bool:
        return self.ragged_outer if self.inner_rows else self.ragged_inner

    @property
    def ragged_words(self) -> bool:
        return self.wide and (self.ragged_inner if self.inner_rows else self.ragged_outer)


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes of a case in elements of C."""

    tile: tuple[int, int]
    block: tuple[int, int]
    wave: tuple[int, int]
    """The whole tile where the axis says none."""

    @classmethod
    def of(cls, case: Case) -> "Geometry":
        tile, block = _sizes(case, "tile"), _sizes(case, "block")
        return cls(tile, block, tile if case.axes["wave"] == "none" else _sizes(case, "wave"))

    @property
    def invocations(self) -> tuple[int, int]:
        """Of a workgroup: down and across."""
        return self.tile[0] // self.block[0], self.tile[1] // self.block[1]

    @property
    def lanes(self) -> tuple[int, int]:
        """Of a wave: down and across."""
        return self.wave[0] // self.block[0], self.wave[1] // self.block[1]

    @property
    def waves(self) -> tuple[int, int]:
        """Of a workgroup: down and across."""
        return self.tile[0] // self.wave[0], self.tile[1] // self.wave[1]

    def invalid(self, subgroup: int) -> str | None:
        for name, size in (("block", self.block), ("wave", self.wave)):
            outer, what = (self.wave, "wave") if name == "block" else (self.tile, "tile")
            if outer[0] % size[0] or outer[1] % size[1]:
                return f"{name} {_text(size)} does not divide {what} {_text(outer)}"
        down, across = self.invocations
        waves = self.waves[0] * self.waves[1]
        if subgroup and waves * subgroup != down * across:
            return f"(BM/WM)*(BN/WN) = {waves} != {down * across / subgroup:g} = workgroup/subgroup"
        return None


class Sgemm(GemmKernel):
    name = "sgemm"
    axes = (
        *COMMON_AXES,
        Axis("source", ("shared", "global"), default="shared"),
        Axis("tile", TILES, default="64x64"),
        Axis("chunk", (4, 8, 16, 32), default=16),
        Axis("block", ("4x4", "4x8", "8x4", "8x8", "8x16", "16x8"), default="4x4"),
        Axis("layout_a", ("outer", "inner"), default="outer"),
        Axis("layout_b", ("outer", "inner"), default="outer"),
        Axis("pad", (0, 1, 2), default=1),
        Axis("vector", (1, 4), default=4),
        Axis("pipeline", ("plain", "prefetch", "double"), default="plain"),
        Axis("unroll", ("full", "short"), default="full"),
        Axis("wave", WAVES, default="none"),
        Axis("lanes", ("plain", "paired"), default="plain"),
        Axis("subgroup", (0, 4, 8, 16, 32, 64, 128), default=0),
    )

    def half_terms(self, case: Case) -> int:
        return int(case.axes["chunk"])

    def invalid(self, case: Case) -> str | None:
        axes, subgroup = case.axes, int(case.axes["subgroup"])
        if subgroup and axes["api"] != "vulkan":
            return f"subgroup {subgroup} needs api vulkan; GLSL ES 3.10 has none"
        if axes["wave"] == "none" and (subgroup or axes["lanes"] != "plain"):
            return f"subgroup {subgroup} and lanes {axes['lanes']} need a wave"
        if axes["source"] == "global":
            without = {"pad": 0, "pipeline": "plain", "layout_a": "outer", "layout_b": "outer"}
            if wrong := [name for name, value in without.items() if axes[name] != value]:
                return f"source global has no tiles in shared memory: {wrong[0]} must be {without[wrong[0]]}"
        return Geometry.of(case).invalid(subgroup) or super().invalid(case)

    def features(self, case: Case) -> frozenset[str]:
        return super().features(case) | ({"subgroup_basic"} if case.axes["subgroup"] else set[str]())

    def passes(self, case: Case) -> tuple[Pass, ...]:
        shape, g, subgroup = GemmShape.of(case), Geometry.of(case), int(case.axes["subgroup"])
        a, b = operands(case)
        down, across = g.invocations
        stages = 2 if case.axes["pipeline"] == "double" else 1
        words = stages * (a.shared_words + b.shared_words) if case.axes["source"] == "shared" else 0
        only = Pass(
            template="sgemm.comp.j2",
            workgroup=(across, down, 1) if case.axes["wave"] == "none" else (down * across, 1, 1),
            grid=(-(-shape.n // g.tile[1]), -(-shape.m // g.tile[0]), shape.batch),
            shared_bytes=words * WORD * (2 if computes_in_half(case) else 4),
            buffers=("a", "b", "o"),
            context={
                **_types(case),
                "operands": (a, b),
                "stages": stages,
                "threads": down * across,
                "bm": g.tile[0],
                "bn": g.tile[1],
                "tm": g.block[0],
                "tn": g.block[1],
                "wm": g.wave[0],
                "wn": g.wave[1],
                "lanes_down": g.lanes[0],
                "lanes_across": g.lanes[1],
                "waves_across": g.waves[1],
                "paired": case.axes["lanes"] == "paired" and min(g.lanes) > 1,
                "wide_o": case.axes["vector"] == WORD and shape.n % WORD == 0,
                "ragged_m": shape.m % g.tile[0] != 0,
                "ragged_n": shape.n % g.tile[1] != 0,
                "even_rows": shape.n % 2 == 0,
                "factor": _literal(shape.alpha),
                "kept": _literal(shape.beta),
            },
            constants={"M": shape.m, "N": shape.n, "K": shape.k, "GROUP": shape.group},
            subgroups=Subgroups(subgroup, g.waves[0] * g.waves[1]) if subgroup else None,
        )
        return (only,)

    def cost(self, case: Case) -> Cost:
        """Model: no cache between workgroups, nor between invocations where nothing lies in shared memory. So
        A is read once for every block of columns of C, B for every block of rows: the tile's, or those of an
        invocation.
        """
        shape, g = GemmShape.of(case), Geometry.of(case)
        rows, columns = g.tile if case.axes["source"] == "shared" else g.block
        a = shape.m * shape.k * -(-shape.n // columns)
        b = shape.k * shape.n * -(-shape.m // rows)
        c = shape.m * shape.n * (1 + (shape.beta != 0))
        return Cost(
            flops=2 * shape.m * shape.n * shape.k * shape.batch,
            bytes_min=self.compulsory_bytes(case),
            bytes_moved=(a + b + c) * shape.batch * element_bytes(case),
        )


def operands(case: Case) -> tuple[Operand, Operand]:
    """A and B; without tiles in shared memory they are read as they lie."""
    shape, g, axes = GemmShape.of(case), Geometry.of(case), case.axes
    shared = axes["source"] == "shared"
    chunk = int(axes["chunk"]) if shared else WORD

    def operand(name: str, outer: int, size: int, called: str, *, inner_rows: bool) -> Operand:
        row, rows = ("K", called) if inner_rows else (called, "K")
        return Operand(
            name=name,
            outer=outer,
            chunk=chunk,
            inner_rows=inner_rows,
            inner_tile=axes[f"layout_{name}"] == "inner" if shared else inner_rows,
            pad=int(axes["pad"]),
            wide=axes["vector"] == WORD and (shape.k if inner_rows else size) % WORD == 0,
            row=row,
            rows=rows,
            ragged_outer=size % outer != 0,
            ragged_inner=shape.k % chunk != 0,
        )

    return (
        operand("a", g.tile[0], shape.m, "M", inner_rows=not shape.trans_a),
        operand("b", g.tile[1], shape.n, "N", inner_rows=shape.trans_b),
    )


def _types(case: Case) -> dict[str, object]:
    """Names of types: a word is what buffers are moved by, a value what products are made of."""
    half, native, low = is_half(case), is_native(case), computes_in_half(case)
    hint = str(case.axes["hint"])
    return {
        "half": half,
        "native": native,
        "low": low,
        "word": "f16vec4" if native else "uvec2" if half else "vec4",
        "element": "float16_t" if native else "uint" if half else "float",
        "value": "f16vec4" if low else "vec4",
        "scalar": "float16_t" if low else "float",
        "hinted": "mediump " if hint == "mediump" else "",
        "exact": hint == "precise",
    }


def _sizes(case: Case, axis: str) -> tuple[int, int]:
    down, across = str(case.axes[axis]).split("x")
    return int(down), int(across)


def _text(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


def _literal(percent: int) -> str:
    """A GLSL number; empty where it multiplies by nothing (100) or nothing is read (0)."""
    return "" if percent in (0, 100) else repr(percent / 100)


kernel = Sgemm()
