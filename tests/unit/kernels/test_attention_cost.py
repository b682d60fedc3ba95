"""Flops, compulsory and modelled traffic, shared memory and grids of the attention kernels."""

import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.harness import all_kernels, make_case

KERNELS = all_kernels()
FLASH, NAIVE = KERNELS["attention_flash"], KERNELS["attention_naive"]
BIG: dict[str, AxisValue] = {"seq": 2048, "head_dim": 64, "heads": 32}


def _case(loaded: LoadedKernel, workload: dict[str, AxisValue], **axes: AxisValue) -> Case:
    return make_case(loaded.kernel, workload, axes=axes)


@pytest.mark.parametrize("loaded", KERNELS.values(), ids=KERNELS)
def test_flops_count_visible_pairs(loaded: LoadedKernel) -> None:
    full = loaded.kernel.cost(_case(loaded, BIG)).flops
    assert full == 4 * 2048 * 2048 * 64 * 32
    assert loaded.kernel.cost(_case(loaded, {**BIG, "causal": True})).flops == full // 4096 * 2049
    bottom_right: dict[str, AxisValue] = {"seq": 2, "kv_seq": 5, "head_dim": 1, "heads": 1, "causal": True}
    assert loaded.kernel.cost(_case(loaded, bottom_right)).flops == 4 * (4 + 5)


@pytest.mark.parametrize("loaded", KERNELS.values(), ids=KERNELS)
def test_compulsory_traffic_is_every_tensor_once(loaded: LoadedKernel) -> None:
    grouped = {**BIG, "kv_heads": 8}
    elements = 2 * 2048 * 64 * (32 + 8)
    assert loaded.kernel.cost(_case(loaded, grouped)).bytes_min == 4 * elements
    half = _case(loaded, grouped, precision="fp16_storage")
    assert loaded.kernel.cost(half).bytes_min == 2 * elements


def test_flash_reads_k_and_v_again_for_every_block_of_rows() -> None:
    """Not O(n): twice the rows of a block halve the traffic of K and V, twice the length quadruples it."""
    tensor = 4 * 2048 * 64 * 32
    for rows in (16, 32, 64):
        cost = FLASH.kernel.cost(_case(FLASH, BIG, tile=f"{rows}x16"))
        assert cost.bytes_moved == 2 * tensor + 2 * tensor * (2048 // rows)
    short = FLASH.kernel.cost(_case(FLASH, BIG)).bytes_moved - 2 * tensor
    long = FLASH.kernel.cost(_case(FLASH, {**BIG, "seq": 4096})).bytes_moved - 4 * tensor
    assert long == 4 * short


def test_causal_flash_skips_tiles_that_no_row_of_the_block_sees() -> None:
    workload: dict[str, AxisValue] = {"seq": 32, "head_dim": 1, "heads": 1, "causal": True}
    cost = FLASH.kernel.cost(_case(FLASH, workload, tile="16x16"))
    assert cost.bytes_moved == 4 * (2 * 32 + 2 * (16 + 32))


def test_naive_moves_its_scores_four_times() -> None:
    cost = NAIVE.kernel.cost(_case(NAIVE, BIG, tile="16x16", vector=4))
    scores = 4 * 32 * 2048 * 2048
    operands = 4 * 2048 * 64 * 32 * (128 + 1 + 2 * 128)
    assert cost.bytes_moved == 4 * scores + operands


@pytest.mark.parametrize(
    ("precision", "vector", "nbytes"),
    [
        ("fp32", 1, 5 * 4),
        ("fp32", 4, 2 * 16),
        ("fp16_storage", 1, 3 * 4),
        ("fp16_storage", 4, 2 * 8),
        ("fp16", 1, 3 * 4),
        ("fp16_all", 4, 2 * 8),
    ],
)
def test_shared_memory_of_flash_holds_two_tiles_of_padded_rows(
    precision: str, vector: int, nbytes: int
) -> None:
    case = _case(
        FLASH,
        {"seq": 9, "head_dim": 5, "heads": 3},
        tile="32x16",
        precision=precision,
        vector=vector,
        api="vulkan",
    )
    (only,) = FLASH.kernel.passes(case)
    assert only.shared_bytes == 2 * 16 * nbytes
    assert only.workgroup == (32, 1, 1)
    assert only.grid == (1, 3, 1)


def test_naive_grids_cover_ragged_edges() -> None:
    case = _case(NAIVE, {"seq": 17, "kv_seq": 33, "head_dim": 5, "heads": 3}, tile="16x16")
    scores, softmax, weighted = NAIVE.kernel.passes(case)
    assert scores.grid == (3, 2, 3)
    assert softmax.grid == (17, 3, 1)
    assert weighted.grid == (1, 2, 3)
    scratch = {b.name: b for b in NAIVE.kernel.buffers(case)}["scores"]
    assert (scratch.role, scratch.dtype, scratch.count) == ("scratch", "f32", 3 * 17 * 33)


def test_native_halves_pad_rows_by_no_second_element() -> None:
    axes: dict[str, AxisValue] = {"api": "vulkan", "precision": "fp16_storage", "vector": 1, "tile": "32x16"}
    sizes = {
        halves: FLASH.kernel.passes(
            _case(FLASH, {"seq": 9, "head_dim": 5, "heads": 3}, halves=halves, **axes)
        )[0].shared_bytes
        for halves in ("packed", "native")
    }
    assert sizes == {"packed": 2 * 16 * 3 * 4, "native": 2 * 16 * 5 * 2}


@pytest.mark.parametrize("loaded", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize(
    ("precision", "halves", "needed"),
    [
        ("fp32", "packed", set[str]()),
        ("fp16_storage", "packed", {"pack_half"}),
        ("fp16_storage", "native", {"storage16", "float16"}),
        ("fp16", "packed", {"pack_half", "float16"}),
        ("fp16", "native", {"storage16", "float16"}),
        ("fp16_all", "packed", {"pack_half", "float16"}),
    ],
)
def test_features_that_16_bit_variants_need(
    loaded: LoadedKernel, precision: str, halves: str, needed: set[str]
) -> None:
    case = _case(loaded, BIG, api="vulkan", precision=precision, halves=halves)
    assert loaded.kernel.features(case) == needed


def test_weights_that_are_not_normalised_need_one_sum_a_row() -> None:
    case = _case(NAIVE, {"seq": 17, "head_dim": 5, "heads": 3}, api="vulkan", precision="fp16")
    sums = {b.name: b for b in NAIVE.kernel.buffers(case)}["sums"]
    assert (sums.role, sums.dtype, sums.count) == ("scratch", "f32", 3 * 17)
