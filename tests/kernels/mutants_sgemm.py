"""sgemm broken on purpose: replacements in its files, and the elements of C that must break.

``breaks`` gets product of the batch, row and column of every element, as arrays.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.case import AxisValue
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.broken import Edit, load_broken

KERNEL = "sgemm/kernel.py"
SHADER = "sgemm/sgemm.comp.j2"
MATRICES = "sgemm/matrices.glsl.j2"

Place = NDArray[np.int_]
Elements = Callable[[Place, Place, Place], NDArray[Any]]

SMALL: dict[str, AxisValue] = {"tile": "16x16", "chunk": 8, "unroll": "short"}
MANY: dict[str, AxisValue] = {"tile": "32x32", "chunk": 8, "unroll": "short"}
"""64 invocations: more than any software driver runs in step, so that races show."""
WAVES: dict[str, AxisValue] = {"tile": "16x32", "wave": "8x16", "chunk": 8, "unroll": "short"}
HALVES: dict[str, AxisValue] = {"precision": "fp16_storage"}
M, N, K = 19, 22, 21
"""No multiple of a tile, a chunk or a word."""
ODD: dict[str, AxisValue] = {"m": M, "n": N, "k": K}
EVEN: dict[str, AxisValue] = {"m": 16, "n": 16, "k": 32}
SCALED: dict[str, AxisValue] = {**ODD, "alpha": 33, "beta": 50}


def _all(product: Place, row: Place, column: Place) -> NDArray[Any]:
    del row, column
    return product >= 0


@dataclass(frozen=True, slots=True)
class GemmMutant:
    name: str
    fault: str
    edits: tuple[Edit, ...]
    breaks: Elements = _all
    inputs: str = "normal"
    workload: dict[str, AxisValue] = field(default_factory=lambda: dict(ODD))
    axes: dict[str, AxisValue] = field(default_factory=dict[str, AxisValue])
    race: bool = False
    """Which of the elements in ``breaks`` do break depends on the order."""
    unwritten: bool = False
    """Some elements keep the prefilled pattern."""
    kernel: str = "sgemm"

    def load(self, folder: Path) -> LoadedKernel:
        return load_broken(folder / self.name, self.kernel, self.edits)


COPIED = '{{ copy("k") }}\n            {{ sync() }}\n'
KEPT = '{% if beta %} + {{ kept ~ " * " if kept }}{{ old }}{% endif %}'
SUM = "                    {{ sums(i, x) }} += {{ left }} * {{ right }};\n"
ROUNDED_SUM = "= rounded({{ sums(i, x) }} + {{ left }} * {{ right }})"
PUT = "    {{ hinted }}VALUE value = to_value(word);\n{% if x.transposed %}"
WITHIN_ROW = (
    "if (d < uint(N)) {\n            uint at = row * uint(N) + d;\n            data_o[at] = {{ element }}"
)
AHEAD = (
    "{% if ahead %}\n{{ put() }}\n            {{ sync() }}\n            if (k + {{ chunk }}u < uint(K)) {\n"
    '{{ fetch("k + %du" % chunk) }}'
)
ROUNDED = """
vec4 rounded(vec4 x) {
    return vec4(unpackHalf2x16(packHalf2x16(x.xy)), unpackHalf2x16(packHalf2x16(x.zw)));
}

{{ hinted }}VALUE to_value("""

MUTANTS = (
    GemmMutant(
        "no_barrier_before_multiplying",
        "tiles are read while others still write them",
        ((SHADER, COPIED, '{{ copy("k") }}\n'),),
        workload={"m": 32, "n": 32, "k": 32},
        axes=MANY,
        race=True,
    ),
    GemmMutant(
        "no_barrier_after_multiplying",
        "tiles are written while others still read them",
        ((SHADER, "            {{ sync() }} // nobody writes what others still read\n", ""),),
        workload={"m": 32, "n": 32, "k": 32},
        axes=MANY,
        race=True,
    ),
    GemmMutant(
        "tail_of_k_is_left_out",
        "a chunk that is not whole is not multiplied",
        (
            (
                SHADER,
                "k < uint(K); k += {{ chunk }}u) {\n{% if ahead %}",
                "k + {{ chunk - 1 }}u < uint(K); k += {{ chunk }}u) {\n{% if ahead %}",
            ),
        ),
    ),
    GemmMutant(
        "padding_is_not_zero",
        "past the end of k the last words of A and B count again",
        ((MATRICES, 'if checks else "word" }}', 'if false else "word" }}'),),
        workload={"m": 16, "n": 16, "k": 20},
    ),
    GemmMutant(
        "last_row_is_not_written",
        "the guard keeps the last row out",
        ((SHADER, '"if (row < uint(M)) "', '"if (row < uint(M) - 1u) "'),),
        lambda product, row, column: row == M - 1,
        unwritten=True,
    ),
    GemmMutant(
        "columns_past_the_end_are_written",
        "zeros go into the next row, and behind the last one",
        (
            (
                MATRICES,
                WITHIN_ROW,
                WITHIN_ROW.replace("uint(N))", "uint(N) + 2u)"),
            ),
        ),
        lambda product, row, column: (column < 2) & (row > 0),
        race=True,
    ),
    GemmMutant(
        "tile_is_not_transposed",
        "words along k are stored where words of rows are read",
        ((SHADER, PUT, PUT.replace("x.transposed", "false")),),
    ),
    GemmMutant(
        "components_change_places",
        "the last two of four k are swapped on their way",
        (
            (SHADER, "2 * x.stride }}u][e] = value.z;", "2 * x.stride }}u][e] = value.w;"),
            (SHADER, "3 * x.stride }}u][e] = value.w;", "3 * x.stride }}u][e] = value.z;"),
        ),
    ),
    GemmMutant(
        "stride_without_pad",
        "tiles are written as if no word followed a line",
        (
            (
                SHADER,
                "sm[base + {{ x.name }}_row(n) * {{ x.stride }}u +",
                "sm[base + {{ x.name }}_row(n) * {{ x.stride - x.pad }}u +",
            ),
        ),
    ),
    GemmMutant(
        "alpha_and_beta_change_places",
        "C is multiplied by alpha, the product by beta",
        ((MATRICES, '{{ factor ~ " * " if factor }}{{ sums }}', '{{ kept ~ " * " if kept }}{{ sums }}'),),
        workload=SCALED,
    ),
    GemmMutant(
        "alpha_is_forgotten",
        "the product is not multiplied",
        ((MATRICES, '{{ factor ~ " * " if factor }}{{ sums }}', "{{ sums }}"),),
        workload={**ODD, "alpha": -50},
    ),
    GemmMutant(
        "beta_is_forgotten",
        "C is overwritten",
        ((MATRICES, KEPT, ""),),
        workload={**ODD, "beta": 100},
    ),
    GemmMutant(
        "beta_0_reads_c",
        "a vanishing part of C is added: NaN stays",
        ((MATRICES, KEPT, ' + {{ kept ~ " * " if kept else "1e-30 * " }}{{ old }}'),),
        lambda product, row, column: ((row * N + column) % 5 == 0) | ((row * N + column) % 7 == 0),
        inputs="nan_in_c",
    ),
    GemmMutant(
        "batch_wraps_around",
        "product i takes B number i modulo b_batch",
        ((SHADER, '"matrix / uint(GROUP)"', '"matrix % (gl_NumWorkGroups.z / uint(GROUP))"'),),
        lambda product, row, column: (product == 1) | (product == 2),
        workload={**ODD, "batch": 4, "b_batch": 2},
    ),
    GemmMutant(
        "b_is_transposed_anyway",
        "rows of B are taken for columns",
        ((KERNEL, "inner_rows=shape.trans_b)", "inner_rows=not shape.trans_b)"),),
        workload={"m": 16, "n": 20, "k": 20},
    ),
    GemmMutant(
        "trans_a_is_ignored",
        "A is read as if it were not transposed",
        ((KERNEL, "inner_rows=not shape.trans_a)", "inner_rows=True)"),),
        workload={"m": 20, "n": 16, "k": 20, "trans_a": True},
    ),
    GemmMutant(
        "stale_chunk",
        "the chunk that is fetched ahead is this one again",
        ((SHADER, AHEAD, AHEAD.replace('"k + %du" % chunk', '"k"')),),
        axes={"pipeline": "prefetch"},
    ),
    GemmMutant(
        "stale_tile",
        "of two tiles the first is multiplied every time",
        ((SHADER, "uint base = (k / {{ chunk }}u & 1u) * {{ stage }}u;", "uint base = 0u;"),),
        axes={"pipeline": "double"},
    ),
    GemmMutant(
        "fp16_accumulator",
        "sums are rounded to fp16: 288 products of 256 overflow",
        (
            (MATRICES, "\n{{ hinted }}VALUE to_value(", ROUNDED),
            (SHADER, SUM, SUM.replace("+= {{ left }} * {{ right }}", ROUNDED_SUM)),
        ),
        inputs="constant_16",
        workload={"m": 9, "n": 5, "k": 288},
    ),
    GemmMutant(
        "one_k_four_times",
        "words along k give their first element only",
        ((SHADER, 'left = "a%d.%s" % (i, e)', 'left = "a%d.x" % i'),),
        axes={"layout_a": "inner"},
    ),
    GemmMutant(
        "waves_lie_on_each_other",
        "all waves of a row make the columns of the first",
        ((SHADER, "across += number % {{ waves_across }}u", "across += number % 1u"),),
        lambda product, row, column: column >= 16,
        axes=WAVES,
        unwritten=True,
    ),
    GemmMutant(
        "paired_lanes_lie_on_each_other",
        "pairs of rows follow each other by one",
        ((SHADER, "(pair / {{ lanes_across // 2 }}u) << 1u)", "(pair / {{ lanes_across // 2 }}u))"),),
        lambda product, row, column: row >= 8,
        workload={"m": 16, "n": 16, "k": 8},
        axes={"wave": "16x16", "lanes": "paired"},
        unwritten=True,
    ),
    GemmMutant(
        "halves_are_added_to_the_pattern",
        "the half of a shared word is not cleared before it is set",
        ((MATRICES, "            atomicAnd(data_o[at >> 1u], ~(0xffffu << shift));\n", ""),),
        workload={**ODD, "n": 21},
        axes=HALVES,
        unwritten=True,
    ),
    GemmMutant(
        "one_half_twice",
        "both halves of a word are its first element",
        ((MATRICES, "vec2(sums[j], sums[j + 1u])", "vec2(sums[j], sums[j])"),),
        lambda product, row, column: column % 2 == 1,
        axes=HALVES,
    ),
)

SUBGROUP_MUTANTS = (
    GemmMutant(
        "half_a_subgroup",
        "invocations are counted in subgroups of four, which hold eight",
        ((SHADER, "gl_SubgroupID * {{ subgroup }}u", "gl_SubgroupID * {{ subgroup // 2 }}u"),),
        lambda product, row, column: (row >= 12) | (row >= 8) & (column >= 16),
        workload={"m": 16, "n": 32, "k": 8},
        axes={**WAVES, "subgroup": 8, "source": "global", "pad": 0},
        unwritten=True,
    ),
)
"""Geometry that comes of a wrong size of subgroups (G1-07); for a driver whose subgroups hold eight."""
