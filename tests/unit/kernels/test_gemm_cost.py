"""Flops and traffic of sgemm beside a loop nest that counts them; declared sizes beside the text's."""

import re
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Subgroups
from orchestrator.ops.gemm_shape import GemmShape, gemm_reference
from orchestrator.planning.kernel_folder import load_kernel
from orchestrator.planning.prune import Drop, check
from orchestrator.planning.render import render_case
from tests.kernels.harness import KERNELS, make_case

LOADED = load_kernel(KERNELS / "sgemm")
BIG: dict[str, AxisValue] = {"m": 4096, "n": 4096, "k": 4096}
SHARED = re.compile(r"shared \w+ sm\[(\d+)\];")
LOCAL = re.compile(r"local_size_x = (\d+), local_size_y = (\d+)")

Matrix = NDArray[np.float64]


def _case(workload: dict[str, AxisValue], **axes: AxisValue) -> Case:
    return make_case(LOADED.kernel, workload, axes=axes)


class Memory:
    """Counts elements that are read and written, multiply-adds, and sweeps over all workgroups."""

    def __init__(self) -> None:
        self.dispatches = 0
        self.moved = 0
        self.flops = 0

    def read(self, matrix: Matrix, *at: slice | int) -> Matrix:
        part = np.array(matrix[at])
        self.moved += part.size
        return part

    def write(self, matrix: Matrix, value: Matrix, *at: slice | int) -> None:
        matrix[at] = value
        self.moved += value.size


def _spans(size: int, tile: int) -> Iterator[slice]:
    for start in range(0, size, tile):
        yield slice(start, min(size, start + tile))


def _nest(
    memory: Memory, a: Matrix, b: Matrix, c: Matrix, shape: GemmShape, tile: tuple[int, int], chunk: int
) -> Matrix:
    """What the kernel does, one tile of C after another; nothing is kept from one to the next."""
    out = np.full(shape.c_shape, np.nan)
    memory.dispatches += 1
    for i in range(shape.batch):
        for rows in _spans(shape.m, tile[0]):
            for columns in _spans(shape.n, tile[1]):
                sums = np.zeros((rows.stop - rows.start, columns.stop - columns.start))
                for part in _spans(shape.k, chunk):
                    left = memory.read(a, i, rows, part)
                    right = memory.read(b, i // shape.group, part, columns)
                    for p in range(left.shape[1]):
                        sums += np.multiply.outer(left[:, p], right[p])
                        memory.flops += 2 * sums.size
                value = shape.alpha / 100 * sums
                if shape.beta:
                    value = value + shape.beta / 100 * memory.read(c, i, rows, columns)
                memory.write(out, value, i, rows, columns)
    return out


@pytest.mark.parametrize(("precision", "element_bytes"), [("fp32", 4), ("fp16_storage", 2)])
@pytest.mark.parametrize("beta", [0, 50])
@pytest.mark.parametrize(
    ("m", "n", "k", "batch", "b_batch"), [(16, 16, 8, 1, 1), (19, 37, 13, 4, 2), (1, 1, 1, 1, 1)]
)
@pytest.mark.parametrize(
    ("axes", "tile"),
    [
        ({"tile": "16x16", "chunk": 8}, (16, 16)),
        ({"tile": "16x32", "chunk": 4}, (16, 32)),
        ({"tile": "16x32", "source": "global", "block": "4x8", "pad": 0}, (4, 8)),
    ],
)
def test_model_is_what_a_loop_nest_counts(
    axes: dict[str, AxisValue],
    tile: tuple[int, int],
    m: int,
    n: int,
    k: int,
    batch: int,
    b_batch: int,
    beta: int,
    precision: str,
    element_bytes: int,
) -> None:
    workload: dict[str, AxisValue] = {"m": m, "n": n, "k": k, "batch": batch, "b_batch": b_batch}
    case = _case({**workload, "alpha": 33, "beta": beta}, precision=precision, **axes)
    assert LOADED.kernel.invalid(case) is None
    shape, memory = GemmShape.of(case), Memory()
    inputs = {name: x.astype(np.float64) for name, x in LOADED.kernel.inputs(case).items()}
    old = inputs.get("o", np.zeros(shape.c_shape))
    out = _nest(memory, inputs["a"], inputs["b"], old, shape, tile, int(case.axes["chunk"]))
    np.testing.assert_allclose(
        out, gemm_reference(inputs["a"], inputs["b"], old if beta else None, shape), rtol=1e-9, atol=1e-12
    )
    cost = LOADED.kernel.cost(case)
    assert (cost.bytes_moved, cost.flops) == (memory.moved * element_bytes, memory.flops)
    assert len(LOADED.kernel.passes(case)) == memory.dispatches
    crossings = 2 if beta else 1
    elements = batch * m * k + b_batch * k * n + crossings * batch * m * n
    assert cost.bytes_min == elements * element_bytes <= cost.bytes_moved


def test_larger_tiles_move_less() -> None:
    """4096 cubed: 64 GiB of operands by tiles of 8, 4 GiB by 128; 0.2 GB are compulsory."""
    moved = {t: LOADED.kernel.cost(_case(BIG, tile=t)).bytes_moved for t in ("8x8", "64x64", "128x128")}
    matrix = 4 * 4096**2
    assert moved == {t: matrix * (1 + 2 * 4096 // int(t.split("x")[0])) for t in moved}
    assert LOADED.kernel.cost(_case(BIG)).bytes_min == 3 * matrix
    assert LOADED.kernel.cost(_case(BIG)).flops == 2 * 4096**3


@pytest.mark.parametrize("api", ["gles", "vulkan"])
@pytest.mark.parametrize(
    ("axes", "shared_bytes", "workgroup"),
    [
        ({"tile": "128x128", "block": "8x8", "chunk": 16}, 2 * 16 * 33 * 16, (16, 16, 1)),
        ({"tile": "128x128", "block": "8x8", "chunk": 8, "pipeline": "double"}, 4 * 8 * 33 * 16, (16, 16, 1)),
        ({"tile": "64x64", "chunk": 16, "pad": 0, "wave": "16x32"}, 2 * 16 * 16 * 16, (256, 1, 1)),
        ({"tile": "64x64", "chunk": 16, "layout_a": "inner"}, (64 * 5 + 16 * 17) * 16, (16, 16, 1)),
        ({"tile": "64x64", "source": "global", "pad": 0}, 0, (16, 16, 1)),
    ],
)
def test_declared_sizes_are_those_of_the_text(
    api: str, axes: dict[str, AxisValue], shared_bytes: int, workgroup: tuple[int, int, int]
) -> None:
    (only,) = render_case(LOADED, _case(BIG, api=api, unroll="short", **axes)).passes
    assert (only.shared_bytes, only.workgroup) == (shared_bytes, workgroup)
    assert sum(int(n) * 16 for n in SHARED.findall(only.glsl)) == shared_bytes
    assert [tuple(map(int, size)) for size in LOCAL.findall(only.glsl)] == [workgroup[:2]]


def test_tiles_of_16_bit_products_take_half_the_memory() -> None:
    (only,) = LOADED.kernel.passes(_case(BIG, api="vulkan", precision="fp16", tile="64x64", chunk=16))
    assert only.shared_bytes == 16 * 2 * 17 * 8


def test_grid_covers_ragged_tiles_of_every_product() -> None:
    (only,) = LOADED.kernel.passes(_case({"m": 65, "n": 129, "k": 5, "batch": 3}, tile="64x64"))
    assert only.grid == (3, 2, 3)


def test_one_vulkan_module_serves_shapes_that_fill_their_tiles() -> None:
    sizes = (256, 512)
    texts = {
        render_case(LOADED, _case({"m": s, "n": s, "k": s}, api="vulkan", unroll="short")).passes[0].glsl
        for s in sizes
    }
    assert len(texts) == 1


def test_g1_07_a_wave_for_a_subgroup_asks_for_that_size() -> None:
    """G1-07: the device must run exactly so many invocations as the geometry takes for granted."""
    case = _case(BIG, api="vulkan", tile="128x128", block="8x8", wave="64x32", subgroup=32)
    (only,) = LOADED.kernel.passes(case)
    assert only.subgroups == Subgroups(32, 8)
    assert "subgroup_basic" in LOADED.kernel.features(case)
    wrong = check(
        LOADED.kernel, _case(BIG, api="vulkan", tile="128x128", block="8x8", wave="64x64", subgroup=32)
    )
    assert isinstance(wrong, Drop)
    assert wrong.reasons == ("(BM/WM)*(BN/WN) = 4 != 8 = workgroup/subgroup",)


@pytest.mark.parametrize(
    ("axes", "needed"),
    [
        ({"precision": "fp32"}, set[str]()),
        ({"precision": "fp16_storage"}, {"pack_half"}),
        ({"precision": "fp16_storage", "halves": "native"}, {"storage16", "float16"}),
        ({"precision": "fp16"}, {"pack_half", "float16"}),
    ],
)
def test_features_that_16_bit_variants_need(axes: dict[str, AxisValue], needed: set[str]) -> None:
    assert LOADED.kernel.features(_case(BIG, api="vulkan", **axes)) == needed


def test_c_is_an_output_unless_it_is_read_or_poisoned() -> None:
    def role(beta: int, inputs: str) -> str:
        workload: dict[str, AxisValue] = {"m": 4, "n": 4, "k": 4, "beta": beta}
        return LOADED.kernel.buffers(make_case(LOADED.kernel, workload, inputs=inputs))[2].role

    assert role(0, "normal") == "out"
    assert role(0, "nan_in_c") == role(33, "normal") == role(33, "nan_in_c") == "inout"
