"""Flops and traffic of the blur_tonemap kernels and of scale, beside loop nests that count what they do."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestrator.domain.case import AxisValue, Case
from orchestrator.ops.blur_tonemap_shape import ImageShape, blur_tonemap_reference, tone_curve
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernel
from tests.kernels.harness import KERNELS, make_case

TWO_PASS, FUSED, SCALE = (
    load_kernel(KERNELS / name) for name in ("blur_tonemap_two_pass", "blur_tonemap_fused", "scale")
)
MB = 10**6
TWELVE: dict[str, AxisValue] = {"width": 4000, "height": 3000, "radius": 2}

Image = NDArray[np.float64]


@dataclass
class Memory:
    """Counts what passes between memory and a cache that is as large as it takes, but empty for each pass."""

    texel_bytes: int
    bytes_moved: int = 0
    loads: int = 0
    flops: int = 0
    passes: int = 0
    _cached: set[tuple[str, int, int]] = field(default_factory=set[tuple[str, int, int]])

    def begin_pass(self) -> None:
        self.passes += 1
        self._cached.clear()

    def load(self, name: str, image: Image, row: int, column: int) -> Image:
        self.loads += 1
        self._move(name, row, column)
        return image[row, column]

    def store(self, name: str, image: Image, row: int, column: int, value: Image) -> None:
        self._move(name, row, column)
        image[row, column] = value

    def _move(self, name: str, row: int, column: int) -> None:
        if (name, row, column) not in self._cached:
            self._cached.add((name, row, column))
            self.bytes_moved += self.texel_bytes


def _box(memory: Memory, image: Image, shape: ImageShape, row: int, column: int) -> Image:
    total = np.zeros(4)
    for y in range(row - shape.radius, row + shape.radius + 1):
        for x in range(column - shape.radius, column + shape.radius + 1):
            inside = min(max(y, 0), shape.height - 1), min(max(x, 0), shape.width - 1)
            total += memory.load("image", image, *inside)
            memory.flops += 4
    return total / shape.box


def _toned(memory: Memory, mean: Image) -> Image:
    memory.flops += 3 * 3  # an addition, a division and a power for each colour
    return np.array([*tone_curve(mean[:3]), mean[3]])


def _nest(memory: Memory, image: Image, shape: ImageShape, *, fused: bool) -> Image:
    """The kernels' loops over texels, one after another."""
    out, blurred = np.zeros_like(image), np.zeros_like(image)
    memory.begin_pass()
    for row, column in np.ndindex(shape.height, shape.width):
        mean = _box(memory, image, shape, row, column)
        if fused:
            memory.store("o", out, row, column, _toned(memory, mean))
        else:
            memory.store("blurred", blurred, row, column, mean)
    if not fused:
        memory.begin_pass()
        for row, column in np.ndindex(shape.height, shape.width):
            mean = memory.load("blurred", blurred, row, column)
            memory.store("o", out, row, column, _toned(memory, mean))
    return out


def _case(loaded: LoadedKernel, workload: dict[str, AxisValue], **axes: AxisValue) -> Case:
    return make_case(loaded.kernel, workload, axes=axes)


@pytest.mark.parametrize(("loaded", "fused"), [(TWO_PASS, False), (FUSED, True)], ids=["two_pass", "fused"])
@pytest.mark.parametrize(("precision", "texel_bytes"), [("fp32", 16), ("fp16_storage", 8)])
@pytest.mark.parametrize(("width", "height", "radius"), [(7, 5, 2), (1, 9, 1), (3, 2, 4)])
def test_cost_is_what_a_loop_nest_counts(
    loaded: LoadedKernel, fused: bool, precision: str, texel_bytes: int, width: int, height: int, radius: int
) -> None:
    case = _case(loaded, {"width": width, "height": height, "radius": radius}, precision=precision)
    shape = ImageShape.of(case)
    image = loaded.kernel.inputs(case)["image"].astype(np.float64)
    memory = Memory(texel_bytes)
    out = _nest(memory, image, shape, fused=fused)
    np.testing.assert_allclose(out, blur_tonemap_reference(image, shape, rows=2), rtol=1e-12)
    cost = loaded.kernel.cost(case)
    assert (cost.bytes_moved, cost.flops) == (memory.bytes_moved, memory.flops)
    assert len(loaded.kernel.passes(case)) == memory.passes
    assert cost.bytes_min == 2 * texel_bytes * width * height


def test_12_megapixels_move_384_mb_in_two_passes_and_192_fused() -> None:
    """One image of 12 megapixels, 4 channels, 2 bytes: 96 MB. Four of those cross in two passes."""
    two, one = (k.kernel.cost(_case(k, TWELVE, precision="fp16_storage")) for k in (TWO_PASS, FUSED))
    assert (two.bytes_moved, one.bytes_moved) == (384 * MB, 192 * MB)
    assert two.bytes_min == one.bytes_min == 192 * MB
    assert two.flops == one.flops
    full = FUSED.kernel.cost(_case(FUSED, TWELVE, precision="fp32"))
    assert full.bytes_moved == 384 * MB


def test_fusing_removes_an_allocation_of_the_image() -> None:
    two, one = (k.kernel.buffers(_case(k, TWELVE, precision="fp16_storage")) for k in (TWO_PASS, FUSED))
    assert sum(b.nbytes for b in two) - sum(b.nbytes for b in one) == 96 * MB
    assert [b.role for b in two] == ["in", "scratch", "out"]


@pytest.mark.parametrize(("rows", "loads"), [(1, 25.0), (2, 15.0), (4, 10.0), (8, 7.5)])
def test_rows_share_loads(rows: int, loads: float) -> None:
    """Of each output: rows of the walk down × texels of a row of the box, over outputs of the walk."""
    case = _case(FUSED, TWELVE, rows=rows, tile="32x4")
    shape = ImageShape.of(case)
    (step,) = FUSED.kernel.passes(case)
    walk = rows + 2 * shape.radius if rows > 1 else 2 * shape.radius + 1
    assert walk * (2 * shape.radius + 1) / rows == loads
    assert step.grid == (125, -(-3000 // (4 * rows)), 1)


@pytest.mark.parametrize(
    ("precision", "tile", "rows", "nbytes"),
    [
        ("fp32", "8x8", 1, 12 * 12 * 16),
        ("fp16_storage", "8x8", 1, 12 * 12 * 8),
        ("fp16_storage", "16x16", 2, 20 * 36 * 8),
    ],
)
def test_shared_memory_holds_the_tile_and_its_halo(precision: str, tile: str, rows: int, nbytes: int) -> None:
    axes: dict[str, AxisValue] = {"precision": precision, "tile": tile, "rows": rows}
    for source, expected in (("global", 0), ("shared", nbytes)):
        case = _case(TWO_PASS, TWELVE, source=source, **axes)
        blur, tone = TWO_PASS.kernel.passes(case)
        assert (blur.shared_bytes, tone.shared_bytes) == (expected, 0)


@pytest.mark.parametrize(
    ("loaded", "precision", "halves", "needed"),
    [
        (FUSED, "fp32", "packed", set[str]()),
        (FUSED, "fp16_storage", "packed", {"pack_half"}),
        (FUSED, "fp16_storage", "native", {"storage16", "float16"}),
        (FUSED, "fp16", "packed", {"pack_half", "float16"}),
        (SCALE, "fp16_storage", "packed", {"pack_half"}),
        (SCALE, "fp16_storage", "native", {"storage16"}),
        (SCALE, "fp16", "native", {"storage16", "float16"}),
    ],
)
def test_features_that_16_bit_variants_need(
    loaded: LoadedKernel, precision: str, halves: str, needed: set[str]
) -> None:
    workload = {"n": 8} if loaded is SCALE else TWELVE
    inputs = loaded.kernel.distributions[0]
    axes: dict[str, AxisValue] = {"api": "vulkan", "precision": precision, "halves": halves}
    assert loaded.kernel.features(make_case(loaded.kernel, workload, inputs=inputs, axes=axes)) == needed


@pytest.mark.parametrize(("precision", "moved"), [("fp32", 8008), ("fp16_storage", 4004)])
def test_scale_reads_and_writes_every_element_once(precision: str, moved: int) -> None:
    cost = SCALE.kernel.cost(_case(SCALE, {"n": 1001}, precision=precision))
    assert (cost.flops, cost.bytes_min, cost.bytes_moved) == (1001, moved, moved)
