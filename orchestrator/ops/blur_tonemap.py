"""The op ``blur_tonemap``: a box blur and a tone curve of an RGBA image; what its kernels share.

``o = tone(blur(image))``, images [height, width, 4] in C order. The blur is the mean over the (2·radius + 1)²
texels around each one; texels outside the image are those of the nearest edge (clamp to edge). The tone curve
is clamp(x, 0) → x/(1 + x) (Reinhard) → the power 1/2.2, for red, green and blue. Alpha is blurred like a
colour, as premultiplied images want it, and has no tone curve. A mean that is NaN or +inf gives what is not
finite (inf/inf); with ``scrub`` channels of texels that are not finite count as 0, by their bits: compilers
may take comparisons with NaN as never true.

Axes that the op itself understands:

- ``precision``: fp32; fp16_storage: images are fp16 in memory, the one between two passes too, arithmetic is
  fp32; fp16: the tone curve is 16-bit arithmetic. Sums of the blur are fp32 everywhere: 25 texels of 4096 are
  102,400, and fp16 ends at 65,504 (field case G1-12).
- ``halves``: how 16-bit values lie in buffers: packed two to a word, or native 16-bit types.
"""

from collections.abc import Mapping

import numpy as np

from orchestrator.domain.case import Case
from orchestrator.domain.digest import stable_id
from orchestrator.domain.kernel import Array, Axis, Buffer, Cost, Kernel, Reference, Tolerance
from orchestrator.ops import blur_tonemap_inputs
from orchestrator.ops.blur_tonemap_budget import (
    BUDGET_VERSION,
    LARGEST_DIVIDEND,
    Arithmetic,
    block_rows,
    blur_tonemap_tolerance,
)
from orchestrator.ops.blur_tonemap_shape import GAMMA, PARAMS, ImageShape, blur_tonemap_reference
from orchestrator.ops.halves import (
    computes_in_half,
    element_bytes,
    is_half,
    is_native,
    storage_dtype,
    tile_features,
)

COMMON_AXES: tuple[Axis, ...] = (
    Axis("api", ("gles", "vulkan"), default="gles"),
    Axis("precision", ("fp32", "fp16_storage", "fp16"), default="fp32"),
    Axis("halves", ("packed", "native"), default="packed"),
    Axis("tile", ("8x8", "16x8", "16x16", "32x4", "32x8", "64x2"), default="8x8"),
    Axis("source", ("global", "shared"), default="global"),
    Axis("rows", (1, 2, 4, 8, 16), default=1),
    Axis("columns", (1, 2, 4), default=1),
    Axis("edges", ("clamped", "apart"), default="clamped"),
)
"""``tile`` WxH is the workgroup; ``source``: where the blur reads texels from, the buffer or a tile with its
halo in shared memory; ``rows``: texels below each other that an invocation makes, sharing sums of rows;
``columns``: next to each other, sharing what the boxes have in common. Two packed texels are moved as one
word of 16 bytes where rows of the image are whole numbers of them. ``edges`` apart: workgroups whose boxes
lie within the image have code of their own, without clamps."""

MOST_UNROLLED = 4
"""Largest radius with ``rows`` or ``columns`` above 1: the walk is unrolled text there. Radius 8 with 8 rows
took llvmpipe 20 seconds to compile."""
MOST_RADIUS = 127
"""255² texels stay below the 65,535 loop iterations that llvmpipe grants an invocation."""

_FLOPS_OF_CURVE = 3 * 3
"""An addition, a division and a power for each colour."""


class BlurTonemapKernel(Kernel):
    """What both kernels have in common. ``stored_mean``: the blurred image goes through memory."""

    op = "blur_tonemap"
    params = PARAMS
    axes = COMMON_AXES
    distributions = tuple(blur_tonemap_inputs.DISTRIBUTIONS)
    tolerance_version = f"blur_tonemap-{BUDGET_VERSION}"
    stored_mean: bool

    def invalid(self, case: Case) -> str | None:
        radius = ImageShape.of(case).radius
        if radius > MOST_RADIUS:
            return f"radius {radius} > {MOST_RADIUS}"
        for name in ("rows", "columns"):
            if case.axes[name] != 1 and radius > MOST_UNROLLED:
                return f"{name} {case.axes[name]} needs a radius of at most {MOST_UNROLLED}"
        if int(case.axes["columns"]) > 2 * radius + 1:
            return f"columns {case.axes['columns']} > {2 * radius + 1}, the width of a box"
        if case.axes["edges"] == "apart" and case.axes["source"] != "global":
            return "edges apart needs source global: a tile in shared memory is clamped once"
        return _impossible(case) or blur_tonemap_inputs.refusal(case.inputs, half_storage=is_half(case))

    def features(self, case: Case) -> frozenset[str]:
        return tile_features(case)

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        count, dtype = ImageShape.of(case).count, storage_dtype(case)
        image, output = Buffer("image", "in", dtype, count), Buffer("o", "out", dtype, count)
        return (
            (image, Buffer("blurred", "scratch", dtype, count), output)
            if self.stored_mean
            else (image, output)
        )

    def data_key(self, case: Case) -> str:
        shape = ImageShape.of(case)
        return stable_id(
            {
                "op": "blur_tonemap-1",
                "shape": [shape.width, shape.height, shape.radius, shape.scrub],
                "inputs": case.inputs,
                "seed": case.seed,
                "storage": storage_dtype(case),
            }
        )

    def inputs(self, case: Case) -> Mapping[str, Array]:
        image = blur_tonemap_inputs.build(case.inputs, ImageShape.of(case), case.seed)
        return {"image": image.astype(np.float16 if is_half(case) else np.float32)}

    def reference(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Reference]:
        shape = ImageShape.of(case)
        return {"o": blur_tonemap_reference(inputs["image"], shape, block_rows(shape))}

    def tolerance(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Tolerance]:
        """Derivation: orchestrator/ops/blur_tonemap_budget.py."""
        half_curve = computes_in_half(case)
        arithmetic = Arithmetic(
            half_output=is_half(case),
            half_mean=is_half(case) and (self.stored_mean or half_curve),
            half_curve=half_curve,
        )
        return {"o": blur_tonemap_tolerance(inputs["image"], ImageShape.of(case), arithmetic)}

    def cost(self, case: Case) -> Cost:
        """Model: a cache holds the few rows of the image that are under the boxes of running workgroups, and
        nothing from one pass to the next. So each pass reads and writes a whole image once: one round trip
        where the passes are fused, two where they are not. Work is counted as the op states it, one addition
        a texel of the box, whatever sums a variant shares.
        """
        shape = ImageShape.of(case)
        texels = shape.width * shape.height
        once = 2 * self.buffers(case)[0].nbytes
        return Cost(
            flops=texels * (4 * shape.box + _FLOPS_OF_CURVE),
            bytes_min=once,
            bytes_moved=2 * once if self.stored_mean else once,
        )


def tile_of(case: Case) -> tuple[int, int]:
    """Width and height of the workgroup."""
    width, height = str(case.axes["tile"]).split("x")
    return int(width), int(height)


def grid_of(case: Case) -> tuple[int, int, int]:
    """Workgroups that cover the image."""
    shape, (width, height) = ImageShape.of(case), tile_of(case)
    rows, columns = height * int(case.axes["rows"]), width * int(case.axes["columns"])
    return -(-shape.width // columns), -(-shape.height // rows), 1


def halo_bytes(case: Case) -> int:
    """Shared memory of a workgroup's texels and those within ``radius`` around them; 0 without."""
    if case.axes["source"] != "shared":
        return 0
    (width, height), reach = tile_of(case), 2 * ImageShape.of(case).radius
    texels = (width * int(case.axes["columns"]) + reach) * (height * int(case.axes["rows"]) + reach)
    return texels * 4 * element_bytes(case)


def is_paired(case: Case) -> bool:
    """Two texels are one word: four packed halves each, and no row of the image ends within one."""
    packed = is_half(case) and not is_native(case) and case.axes["source"] == "global"
    return packed and int(case.axes["columns"]) > 1 and ImageShape.of(case).width % 2 == 0


def constants_of(case: Case) -> dict[str, int]:
    """What a module for Vulkan is specialised by."""
    shape = ImageShape.of(case)
    return {"WIDTH": shape.width, "HEIGHT": shape.height}


def shader_context(case: Case) -> dict[str, object]:
    """What kernels/_shared/image.glsl.j2 needs to know about a case."""
    width, height = tile_of(case)
    box = ImageShape.of(case).box
    return {
        "tile_width": width,
        "tile_height": height,
        "half": is_half(case),
        "native": is_native(case),
        "low": computes_in_half(case),
        "texel_type": "f16vec4" if is_native(case) else "uvec2" if is_half(case) else "vec4",
        "paired": is_paired(case),
        "apart": case.axes["edges"] == "apart",
        "inverse": f"{float(np.float32(1 / box)):.9g}",
        "gamma": f"{GAMMA:.9g}",
        "largest": f"{LARGEST_DIVIDEND:.1f}",
    }


def _impossible(case: Case) -> str | None:
    """Why these axes contradict each other."""
    if is_native(case) and not is_half(case):
        return "halves native needs a 16-bit precision: fp16_storage or fp16"
    if case.axes["api"] != "vulkan":
        if computes_in_half(case):
            return "precision fp16 needs api vulkan; GLES has no 16-bit arithmetic"
        if is_native(case):
            return "halves native needs api vulkan; GLES has no 16-bit types"
    return None
