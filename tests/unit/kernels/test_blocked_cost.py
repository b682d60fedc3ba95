"""Traffic, shared memory, geometry and requirements of attention_flash_blocked."""

import re

import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Subgroups
from orchestrator.planning.prune import Drop, check
from orchestrator.planning.render import render_case
from tests.kernels.harness import all_kernels, make_case

LOADED = all_kernels()["attention_flash_blocked"]
BIG: dict[str, AxisValue] = {"seq": 2048, "head_dim": 64, "heads": 32}
SHARED = re.compile(r"shared vec4 sm\[(\d+)\];")
LOCAL = re.compile(r"local_size_x = (\d+)")


def _case(workload: dict[str, AxisValue], **axes: AxisValue) -> Case:
    return make_case(LOADED.kernel, workload, axes=axes)


@pytest.mark.parametrize("tile", ["64x64", "128x64", "64x128", "128x128"])
def test_k_and_v_are_read_again_for_every_block_of_rows_and_q_for_every_tile(tile: str) -> None:
    """Twice the rows halve the traffic of K and V, twice the keys of a tile that of q."""
    br, bc = (int(size) for size in tile.split("x"))
    tensor = 4 * 2048 * 64 * 32
    moved = LOADED.kernel.cost(_case(BIG, tile=tile)).bytes_moved
    assert moved == tensor * (1 + 2048 // bc + 2 * 2048 // br)
    half = LOADED.kernel.cost(_case(BIG, tile=tile, precision="fp16_storage")).bytes_moved
    assert half == moved // 2


def test_causal_blocks_skip_tiles_that_none_of_their_rows_sees() -> None:
    workload: dict[str, AxisValue] = {"seq": 32, "head_dim": 1, "heads": 1, "causal": True}
    cost = LOADED.kernel.cost(_case(workload, tile="16x16"))
    assert cost.bytes_moved == 4 * (32 + (16 + 2 * 16) + 2 * (16 + 32))
    unseen: dict[str, AxisValue] = {"seq": 32, "kv_seq": 1, "head_dim": 1, "heads": 1, "causal": True}
    assert LOADED.kernel.cost(_case(unseen, tile="16x16")).bytes_moved == 4 * (32 + 16 + 2)


@pytest.mark.parametrize("api", ["gles", "vulkan"])
@pytest.mark.parametrize(
    ("head_dim", "axes", "shared_bytes", "invocations"),
    [
        (64, {"tile": "128x64", "rows": 8, "chunk": 16}, 20_992, 128),
        (64, {"tile": "64x64", "rows": 4, "chunk": 8}, 10_752, 128),
        (64, {"tile": "64x64", "rows": 4, "chunk": 16}, 12_800, 128),
        (80, {"tile": "64x64", "rows": 4, "chunk": 16}, 14_848, 128),
        (128, {"tile": "64x128", "rows": 8, "chunk": 16}, 25_600, 128),
        (128, {"tile": "128x128", "rows": 8, "chunk": 16}, 41_984, 256),
        (5, {"tile": "16x16", "rows": 4, "chunk": 32}, 5_120, 8),
    ],
)
def test_declared_sizes_are_those_of_the_text(
    api: str, head_dim: int, axes: dict[str, AxisValue], shared_bytes: int, invocations: int
) -> None:
    """Two workgroups of 128x64 at head_dim 64 fit an H200's multiprocessor, 64x64 a phone's 16 KiB."""
    case = _case({**BIG, "head_dim": head_dim}, api=api, **axes)
    (only,) = render_case(LOADED, case).passes
    assert (only.shared_bytes, only.workgroup) == (shared_bytes, (invocations, 1, 1))
    assert [int(n) * 16 for n in SHARED.findall(only.glsl)] == [shared_bytes]
    assert [int(n) for n in LOCAL.findall(only.glsl)] == [invocations]


def test_grid_covers_ragged_blocks_of_every_head() -> None:
    (only,) = LOADED.kernel.passes(_case({"seq": 65, "head_dim": 5, "heads": 3}, tile="64x64"))
    assert only.grid == (2, 3, 1)


def test_shuffles_need_their_features_and_one_size_of_subgroups() -> None:
    case = _case(BIG, api="vulkan", tile="128x64", rows=8, subgroup=32, precision="fp16_storage")
    assert LOADED.kernel.features(case) == {"pack_half", "subgroup_basic", "subgroup_shuffle"}
    assert LOADED.kernel.passes(case)[0].subgroups == Subgroups(32, 4)
    without = _case(BIG, api="vulkan", tile="128x64", rows=8)
    assert LOADED.kernel.features(without) == frozenset()
    assert LOADED.kernel.passes(without)[0].subgroups is None


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        ({"api": "gles", "subgroup": 32}, "subgroup 32 needs api vulkan; GLSL ES 3.10 has none"),
        (
            {"api": "vulkan", "subgroup": 8, "tile": "64x64"},
            "subgroup 8 < 16 invocations that hold a row of tile 64x64",
        ),
        (
            {"api": "vulkan", "subgroup": 16, "tile": "16x16"},
            "subgroup 16 does not divide 8 invocations",
        ),
    ],
)
def test_subgroups_that_cannot_hold_a_row_are_invalid(axes: dict[str, AxisValue], reason: str) -> None:
    found = check(LOADED.kernel, _case(BIG, **axes))
    assert isinstance(found, Drop)
    assert found.reasons == (reason,)
