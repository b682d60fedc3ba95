"""blur_tonemap broken on purpose: replacements in a template, and the elements that must break.

``breaks`` gets the coordinates of every element, as arrays: row, column and channel of an image, or the index
of a number of ``scale`` (then it is all three).
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

SHARED = "_shared/image.glsl.j2"
FUSED = "blur_tonemap_fused/fused.comp.j2"
TONE = "blur_tonemap_two_pass/tone.comp.j2"

Place = NDArray[np.int_]
Elements = Callable[[Place, Place, Place], NDArray[Any]]

WIDTH, HEIGHT, RADIUS = 37, 21, 2
IMAGE: dict[str, AxisValue] = {"width": WIDTH, "height": HEIGHT, "radius": RADIUS}


def _all(row: Place, column: Place, channel: Place) -> NDArray[Any]:
    del column, channel
    return row >= 0


def _colours(row: Place, column: Place, channel: Place) -> NDArray[Any]:
    del row, column
    return channel < 3


def _left_and_right(row: Place, column: Place, channel: Place) -> NDArray[Any]:
    del row, channel
    return (column < RADIUS) | (column >= WIDTH - RADIUS)


def _around_the_middle(row: Place, column: Place, channel: Place) -> NDArray[Any]:
    del channel
    return (np.abs(row - (HEIGHT - 1) // 2) <= RADIUS) & (np.abs(column - (WIDTH - 1) // 2) <= RADIUS)


@dataclass(frozen=True, slots=True)
class ImageMutant:
    name: str
    fault: str
    edits: tuple[Edit, ...]
    breaks: Elements = _all
    inputs: str = "normal"
    workload: dict[str, AxisValue] = field(default_factory=lambda: dict(IMAGE))
    axes: dict[str, AxisValue] = field(default_factory=dict[str, AxisValue])
    kernel: str = "blur_tonemap_fused"
    race: bool = False
    """Which of the elements in ``breaks`` do break depends on the order."""
    unwritten: bool = False
    """Some elements keep the prefilled pattern."""
    most: float = 0.99
    """Share of the elements in ``breaks`` that do break; others are right by chance."""

    def load(self, folder: Path) -> LoadedKernel:
        return load_broken(folder / self.name, self.kernel, self.edits)


CLAMPED_X = "clamp(x, 0, WIDTH - 1)"
CLAMPED = f"fetch_{{{{ name }}}}({CLAMPED_X}, clamp(y, 0, HEIGHT - 1))"
VALUE = 'return {{ "scrubbed(value)" if scrub else "value" }};'
ADDED = 'sum += light_of({{ one % "dx" }});'
FIRST_SUM = "    vec4 sum0_0 = vec4(0.0);"
SUM_ROWS = "sum0_0 += sum_row(from_x, from_y + dy{{ inside }});"
CURVE = "pow(light / (1.0 + light), vec3({{ gamma }}))"
TONED = "\n    return vec4(curve, mean.a);\n}\n"
ROUNDED = """
vec4 rounded(vec4 x) {
    return vec4(unpackHalf2x16(packHalf2x16(x.xy)), unpackHalf2x16(packHalf2x16(x.zw)));
}

TEXEL narrow("""
BARRIERS = "    memoryBarrierShared();\n    barrier();\n"
WITHIN = "x < WIDTH && y < HEIGHT) {\n        data_{{ name }}[y * WIDTH + x]"
AT = '[y * {{ "(WIDTH / 2)" if paired else "WIDTH" }} + x];'
SHARED_TILE: dict[str, AxisValue] = {"source": "shared"}
FOUR_ROWS: dict[str, AxisValue] = {"rows": 4}
TWO_COLUMNS: dict[str, AxisValue] = {"columns": 2}
APART: dict[str, AxisValue] = {"edges": "apart"}
HALVES: dict[str, AxisValue] = {"precision": "fp16_storage"}

BLUR_MUTANTS = (
    ImageMutant(
        "edge_off_by_one",
        "columns are clamped to the width: the texel after the last is the next row's first",
        ((SHARED, CLAMPED_X, "clamp(x, 0, WIDTH)"),),
        lambda row, column, channel: column >= WIDTH - RADIUS,
    ),
    ImageMutant(
        "edges_wrap_around",
        "the left edge goes on at the right one",
        ((SHARED, CLAMPED_X, "(x + WIDTH) % WIDTH"),),
        _left_and_right,
    ),
    ImageMutant(
        "edges_are_black",
        "texels outside the image count as 0",
        (
            (
                SHARED,
                "TEXEL texel(int x, int y{{ parameter }}) {\n",
                "TEXEL texel(int x, int y{{ parameter }}) {\n"
                "    if (x < 0 || x >= WIDTH) return narrow(vec4(0.0));\n",
            ),
        ),
        _left_and_right,
    ),
    ImageMutant(
        "rows_are_not_clamped_alike",
        "rows are clamped one short of the last",
        ((SHARED, CLAMPED, CLAMPED.replace("HEIGHT - 1", "HEIGHT - 2")),),
        lambda row, column, channel: row >= HEIGHT - 1 - RADIUS,
    ),
    ImageMutant(
        "no_barrier_after_the_halo",
        "the tile is read before all of it is loaded",
        ((SHARED, BARRIERS, ""),),
        axes={**SHARED_TILE, "tile": "16x16"},
        race=True,
    ),
    ImageMutant(
        "halo_too_small",
        "the last row of the halo is not loaded",
        ((SHARED, "n < TILE_WIDTH * TILE_HEIGHT;", "n < TILE_WIDTH * (TILE_HEIGHT - 1);"),),
        lambda row, column, channel: row % 8 == 7,
        axes=SHARED_TILE,
    ),
    ImageMutant(
        "halo_too_far_left",
        "the tile starts a column early",
        ((SHARED, "* {{ tile_width * columns }} - RADIUS;", "* {{ tile_width * columns }} - RADIUS - 1;"),),
        axes=SHARED_TILE,
    ),
    ImageMutant(
        "tone_before_blur",
        "texels are tone-mapped and then blurred",
        (
            (
                SHARED,
                VALUE,
                "return vec4(pow(value.rgb / (1.0 + value.rgb), vec3({{ gamma }})), value.a);",
            ),
            (FUSED, 'tone_curve({{ means[0] }}{{ ", inside" if apart }})', "{{ means[0] }}"),
        ),
        _colours,
    ),
    ImageMutant(
        "negative_light",
        "what is below 0 stays so",
        ((SHARED, "vec3 unlit = mix(light, vec3(0.0),", "vec3 unlit = mix(light, light,"),),
        lambda row, column, channel: (column <= WIDTH // 2 - RADIUS) & (channel < 3),
        inputs="negative",
    ),
    ImageMutant(
        "alpha_is_tone_mapped",
        "alpha goes through the curve",
        ((SHARED, TONED, TONED.replace("mean.a", "mean.a / (1.0 + mean.a)")),),
        lambda row, column, channel: channel == 3,
    ),
    ImageMutant(
        "no_gamma",
        "the power is left out",
        ((SHARED, CURVE, "light / (1.0 + light)"),),
        _colours,
    ),
    ImageMutant(
        "fp16_accumulator",
        "sums of the blur are rounded to fp16: 25 times 4096 overflows (G1-12)",
        (
            (SHARED, "\nTEXEL narrow(", ROUNDED),
            (SHARED, ADDED, 'sum = rounded(sum + light_of({{ one % "dx" }}));'),
            (SHARED, SUM_ROWS, "sum0_0 = rounded(sum0_0 + sum_row(from_x, from_y + dy));"),
        ),
        inputs="constant_4096",
        axes=HALVES,
    ),
    ImageMutant(
        "no_column_guard",
        "invocations beyond the right edge write into the next row",
        ((SHARED, WITHIN, WITHIN.replace("x < WIDTH && ", "")),),
        lambda row, column, channel: (column < 3) & (row > 0),
        axes={"tile": "8x8"},
        race=True,
    ),
    ImageMutant(
        "last_row_is_not_written",
        "the guard keeps the last row out",
        ((SHARED, WITHIN, WITHIN.replace("HEIGHT", "HEIGHT - 1")),),
        lambda row, column, channel: row == HEIGHT - 1,
        unwritten=True,
    ),
    ImageMutant(
        "width_and_height_swapped",
        "rows of the image begin every HEIGHT texels",
        ((SHARED, AT, AT.replace('"WIDTH"', '"HEIGHT"')),),
    ),
    ImageMutant(
        "box_too_small",
        "the last column of the box is left out",
        ((SHARED, "dx <= RADIUS", "dx < RADIUS"),),
    ),
    ImageMutant(
        "window_of_rows_off_by_one",
        "boxes go on without their last row",
        ((SHARED, "range(first + at, first + block)", "range(first + at + 1, first + block)"),),
        lambda row, column, channel: row % 4 != 0,
        axes=FOUR_ROWS,
    ),
    ImageMutant(
        "channels_change_places",
        "the two words of a texel are stored the other way round",
        (
            (
                SHARED,
                "return uvec2(packHalf2x16(value.xy), packHalf2x16(value.zw));",
                "return uvec2(packHalf2x16(value.zw), packHalf2x16(value.xy));",
            ),
        ),
        axes=HALVES,
    ),
    ImageMutant(
        "stale_row",
        "the second pass reads the first of its four rows four times",
        ((TONE, "fetch_blurred({{ x }}, {{ y }})", "fetch_blurred({{ x }}, y)"),),
        lambda row, column, channel: row % 4 != 0,
        axes=FOUR_ROWS,
        kernel="blur_tonemap_two_pass",
    ),
    ImageMutant(
        "nan_is_swallowed",
        "pow(NaN) is taken as it comes (G1-21)",
        ((SHARED, "return mix(curve, unlit, greaterThan", "return mix(curve, curve, greaterThan"),),
        lambda row, column, channel: _around_the_middle(row, column, channel) & (channel < 3),
        inputs="nan_texel",
    ),
    ImageMutant(
        "scrub_by_comparison",
        "only what differs from itself is scrubbed: infinity stays",
        ((SHARED, "equal(floatBitsToUint(x) & uvec4(0x7f800000u), uvec4(0x7f800000u))", "notEqual(x, x)"),),
        _around_the_middle,
        inputs="inf_texel",
        workload={**IMAGE, "scrub": True},
    ),
    ImageMutant(
        "pair_beside_the_image",
        "the texel left of the image is the second one's",
        ((SHARED, "both.zw = both.xy;", ""),),
        lambda row, column, channel: column < 2,
        workload={**IMAGE, "width": 38},
        axes={**HALVES, **TWO_COLUMNS},
        most=0.9,  # one texel of 25, in halves: 6 % of the random ones differ by less than the budget
    ),
    ImageMutant(
        "columns_share_too_little",
        "the sum that columns share lacks its last texel",
        ((SHARED, "range(columns, 2 * radius + 1) %} + t", "range(columns, 2 * radius) %} + t"),),
        axes=TWO_COLUMNS,
    ),
    ImageMutant(
        "edge_taken_for_inside",
        "workgroups that end with the image count as inside: boxes go on in the next row",
        ((SHARED, "+ REACH <= WIDTH;", "+ REACH <= WIDTH + REACH;"),),
        lambda row, column, channel: (column >= 30) & (row >= 8) & (row < 16),
        workload={"width": 32, "height": 24, "radius": RADIUS},
        axes=APART,
    ),
    ImageMutant(
        "inside_all_light_is_ordinary",
        "NaN goes through the curve where no edge is near",
        ((SHARED, " || !ordinary(least_light, sum_of_light)", ""),),
        lambda row, column, channel: _around_the_middle(row, column, channel) & (channel < 3),
        inputs="nan_texel",
        axes=APART,
    ),
)

NATIVE_MUTANTS = (
    ImageMutant(
        "native_fp16_accumulator",
        "sums of rows are 16-bit types",
        (
            (SHARED, FIRST_SUM, "    f16vec4 sum0_0 = f16vec4(0.0);"),
            (SHARED, SUM_ROWS, "sum0_0 += f16vec4(sum_row(from_x, from_y + dy));"),
            (SHARED, '"sum0_0 * %s"', '"vec4(sum0_0) * %s"'),
        ),
        inputs="constant_4096",
        axes={"precision": "fp16", "halves": "native"},
    ),
)
"""Where a device has 16-bit arithmetic."""
