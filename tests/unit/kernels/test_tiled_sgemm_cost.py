"""Traffic, dispatches, sizes and requirements of attention_tiled_sgemm, beside loops that count."""

import re

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.planning.prune import Drop, check
from orchestrator.planning.render import render_case
from tests.kernels.harness import all_kernels, make_case
from tests.unit.kernels.tiled_sgemm_emulation import Memory, run

LOADED = all_kernels()["attention_tiled_sgemm"]
BIG: dict[str, AxisValue] = {"seq": 2048, "head_dim": 64, "heads": 32}
SHARED = re.compile(r"shared \w+ vec4 [ab]_tile\[(\d+)\];")

SHAPES: tuple[dict[str, AxisValue], ...] = (
    {"seq": 40, "kv_seq": 70, "head_dim": 20, "heads": 4, "kv_heads": 2},
    {"seq": 33, "kv_seq": 65, "head_dim": 5, "heads": 1, "causal": True},
    {"seq": 65, "kv_seq": 17, "head_dim": 8, "heads": 1, "causal": True},
    {"seq": 70, "head_dim": 6, "heads": 1, "causal": True, "window": 9},
    {"seq": 70, "kv_seq": 50, "head_dim": 3, "heads": 1, "window": 9, "align": "top_left"},
    {"seq": 1, "kv_seq": 300, "head_dim": 8, "heads": 2, "window": 90, "kv_rows": 310, "kv_order": "row"},
    {"seq": 37, "kv_seq": 70, "head_dim": 6, "heads": 2, "mask": "boolean", "causal": True},
    {"seq": 20, "kv_seq": 45, "head_dim": 8, "heads": 2, "mask": "additive"},
)


def _case(workload: dict[str, AxisValue], **axes: AxisValue) -> Case:
    return make_case(LOADED.kernel, workload, axes=axes)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    "axes", [{"tile": 32, "block": "16x16x16"}, {"tile": 128, "block": "32x32x16"}], ids=str
)
@pytest.mark.parametrize("precision", ["fp32", "fp16_storage"])
def test_moved_bytes_are_those_that_the_loops_count(
    shape: dict[str, AxisValue], axes: dict[str, AxisValue], precision: str
) -> None:
    """And the loops, which follow the declared passes, compute attention."""
    case = _case(shape, precision=precision, **axes)
    assert LOADED.kernel.invalid(case) is None
    inputs = dict(LOADED.kernel.inputs(case))
    memory = Memory(LOADED.kernel, case, inputs)
    o = run(memory, LOADED.kernel.passes(case))
    np.testing.assert_allclose(o, LOADED.kernel.reference(case, inputs)["o"], rtol=1e-10, atol=1e-12)
    assert LOADED.kernel.cost(case).bytes_moved == memory.moved.total()
    starts = range(0, memory.shape.kv_seq, memory.bc)
    seen = sum(bool(memory.sees[:, at : at + memory.bc].any()) for at in starts)
    assert len(LOADED.kernel.passes(case)) == 3 * seen + 1


def test_the_text_s_claim_of_linear_traffic_is_wrong() -> None:
    """Twice the length moves four times the bytes: "O(n²) → O(n)" is about scratch, not about traffic."""
    short, long = (LOADED.kernel.cost(_case({**BIG, "seq": n}, tile=64)).bytes_moved for n in (2048, 4096))
    assert long > 3.9 * short


def test_fewer_and_larger_tiles_move_less() -> None:
    """The accumulator goes to memory and back once a tile, the scores four times whatever the tile."""
    tensor, scores = 4 * 2048 * 64 * 32, 4 * 2048 * 2048 * 32
    by_tile = {
        tile: LOADED.kernel.cost(_case(BIG, tile=tile, block="64x64x16")).bytes_moved for tile in (64, 256)
    }
    blocks = 2048 // 64
    rows = 4 * 2048 * 32
    for tile, moved in by_tile.items():
        tiles = 2048 // tile
        operands = tensor * (blocks + 2 * blocks)
        accumulator = 2 * tiles * tensor
        numbers = rows * (5 * tiles - 2 + tiles - 1 + 1)
        assert moved == 4 * scores + operands + accumulator + numbers + tensor


@pytest.mark.parametrize(
    ("shape", "tiles"),
    [
        ({"seq": 100, "head_dim": 8, "heads": 1}, [0, 1, 2, 3]),
        ({"seq": 10, "kv_seq": 100, "head_dim": 8, "heads": 1, "causal": True, "align": "top_left"}, [0]),
        ({"seq": 1, "kv_seq": 100, "head_dim": 8, "heads": 1, "causal": True, "window": 30}, [2, 3]),
    ],
)
def test_tiles_that_no_row_sees_are_not_dispatched(shape: dict[str, AxisValue], tiles: list[int]) -> None:
    passes = LOADED.kernel.passes(_case(shape, tile=32))
    assert [p.values["TILE"] for p in passes if p.template == "scores.comp.j2"] == tiles
    assert [p.values["FIRST"] for p in passes if p.template == "weighted.comp.j2"] == [
        1,
        *[0] * (len(tiles) - 1),
    ]
    assert len(passes) == 3 * len(tiles) + 1


@pytest.mark.parametrize(
    ("block", "invocations", "shared_bytes"),
    [("16x16x16", 16, 2560), ("32x32x16", 64, 4608), ("64x64x16", 256, 8704)],
)
def test_declared_sizes_are_those_of_the_text(block: str, invocations: int, shared_bytes: int) -> None:
    """The largest block runs where 256 invocations do, and leaves half of a phone's 16 KiB."""
    case = _case(BIG, block=block, tile=64)
    for step in render_case(LOADED, case).passes:
        if step.template not in ("scores.comp.j2", "weighted.comp.j2"):
            continue
        assert step.workgroup == (invocations, 1, 1)
        assert f"local_size_x = {invocations}," in step.glsl
        assert step.shared_bytes == 16 * sum(int(n) for n in SHARED.findall(step.glsl)) == shared_bytes


def test_no_pass_binds_more_buffers_than_gles_promises() -> None:
    """MAX_COMPUTE_SHADER_STORAGE_BLOCKS is at least 4 (OpenGL ES 3.1, table 20.45)."""
    passes = LOADED.kernel.passes(_case({**BIG, "mask": "boolean"}))
    assert max(len(p.buffers) for p in passes) == 4


def test_scratch_grows_with_the_tile_and_not_with_the_keys() -> None:
    sizes = {b.name: b.count for b in LOADED.kernel.buffers(_case({**BIG, "kv_seq": 8192}, tile=128))}
    assert sizes["scores"] == 32 * 2048 * 128
    assert sizes["acc"] == 32 * 2048 * 64
    assert sizes["state"] == 3 * 32 * 2048


def test_a_tile_is_whole_blocks() -> None:
    found = check(LOADED.kernel, _case(BIG, tile=32, block="64x64x16"))
    assert isinstance(found, Drop)
    assert found.reasons == ("block 64x64 does not divide tile 32",)
