"""attention_flash_matrix: no software driver has matrix units, so its text, its algorithm and its model are
tested here, and the whole on a GPU by its blocks of matrix.yaml."""

import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Subgroups
from orchestrator.ops import attention_inputs
from orchestrator.ops.attention import AttentionKernel, AttentionShape
from orchestrator.planning.kernel_folder import load_kernels
from orchestrator.planning.render import render_case
from tests.kernels.harness import KERNELS, compile_spirv, make_case
from tests.kernels.named_inputs import BASE, WORKLOADS
from tests.unit.kernels.matrix_emulation import Constants, Emulation

LOADED = load_kernels(KERNELS)["attention_flash_matrix"]
assert isinstance(LOADED.kernel, AttentionKernel)
KERNEL: AttentionKernel = LOADED.kernel
Workload = dict[str, AxisValue]


def _case(workload: Workload, tile: str = "16x16", blocks: int = 1, inputs: str = "normal") -> Case:
    case = make_case(KERNEL, workload, inputs=inputs, axes={"tile": tile, "blocks": blocks})
    assert KERNEL.invalid(case) is None
    return case


def _emulation(case: Case, *, flush: bool = False, truncate: bool = False) -> Emulation:
    return Emulation(Constants.of(LOADED, case), AttentionShape.of(case), flush=flush, truncate=truncate)


def _worst(case: Case, emulation: Emulation) -> float:
    """Largest error as a share of what its element is allowed; infinite where NaN is not where it must be."""
    inputs = KERNEL.inputs(case)
    got = emulation.run(inputs["q"], inputs["k"], inputs["v"]).astype(np.float64)
    ref, tolerance = KERNEL.reference(case, inputs)["o"], KERNEL.tolerance(case, inputs)["o"]
    if not np.array_equal(np.isfinite(got), np.isfinite(ref)):
        return np.inf
    there = np.isfinite(ref)
    return float((np.abs(got - ref) / (tolerance.atol + tolerance.rtol * np.abs(ref)))[there].max())


@pytest.mark.parametrize(
    ("head_dim", "tile", "blocks", "causal"),
    [
        (1, "16x16", 1, False),
        (5, "32x16", 2, True),
        (16, "32x32", 1, False),
        (24, "32x32", 2, True),
        (31, "64x32", 1, True),
        (64, "128x64", 2, False),
        (80, "64x64", 1, True),
        (128, "128x64", 1, False),
        (256, "64x64", 1, True),
        (256, "128x32", 2, False),
    ],
)
def test_shaders_are_valid_modules_of_vulkan_1_1(head_dim: int, tile: str, blocks: int, causal: bool) -> None:
    case = _case({"seq": 33, "head_dim": head_dim, "heads": 2, "causal": causal}, tile, blocks)
    (only,) = render_case(LOADED, case).passes
    module = compile_spirv(only.glsl, where="matrix.comp.j2")
    validator = Path(sysconfig.get_path("scripts")) / "spirv-val"
    done = subprocess.run(
        [validator, "--target-env", "vulkan1.1", "-"], input=module, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    ("tile", "blocks", "head_dim", "invocations", "nbytes"),
    [
        ("128x64", 2, 64, 128, 64 * 144 + 64 * 144 + 64 * 80),
        ("128x64", 1, 128, 256, 64 * 272 + 128 * 144 + 128 * 80),
        ("16x16", 1, 5, 32, 16 * 48 + 16 * 48 + 16 * 80),
        ("64x64", 1, 256, 128, 64 * 528 + 64 * 144 + 64 * 80),
    ],
)
def test_a_workgroup_is_whole_subgroups_and_shared_memory_is_a_tile_weights_and_rows(
    tile: str, blocks: int, head_dim: int, invocations: int, nbytes: int
) -> None:
    """Rows of halves a word (16 bytes) longer than their padded content, rows of 16 floats and a word."""
    (only,) = KERNEL.passes(_case({"seq": 130, "head_dim": head_dim, "heads": 3}, tile, blocks))
    assert only.shared_bytes == nbytes
    assert only.workgroup == (invocations, 1, 1)
    assert only.subgroups == Subgroups(32, invocations // 32)
    rows = int(tile.split("x")[0])
    assert only.grid == (-(-130 // rows), 3, 1)
    declared = render_case(LOADED, _case({"seq": 130, "head_dim": head_dim, "heads": 3}, tile, blocks))
    arrays = [line for line in declared.passes[0].glsl.splitlines() if line.startswith("shared ")]
    assert sum(16 * int(line.partition("[")[2].partition("]")[0]) for line in arrays) == nbytes


def test_two_blocks_of_rows_need_32_rows() -> None:
    case = make_case(KERNEL, {**BASE, "seq": 8}, axes={"tile": "16x16", "blocks": 2})
    assert KERNEL.invalid(case) == "blocks 2 needs tiles of 32 rows, not 16"


NAMED = [name for name in attention_inputs.DISTRIBUTIONS if name != "beyond_half"]


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("inputs", NAMED)
def test_every_named_input_stays_within_the_budget(inputs: str, flush: bool) -> None:
    case = _case({**BASE, **WORKLOADS[inputs]}, inputs=inputs)
    emulation = _emulation(case, flush=flush)
    assert _worst(case, emulation) < 1.0
    assert emulation.largest <= 2.0**15


def test_values_beyond_fp16_are_refused() -> None:
    case = make_case(KERNEL, {**BASE}, inputs="beyond_half")
    assert "largest fp16" in str(KERNEL.invalid(case))


@pytest.mark.parametrize(
    ("workload", "tile"),
    [
        ({"seq": 130, "head_dim": 64, "heads": 2}, "128x64"),
        ({"seq": 65, "head_dim": 80, "heads": 4, "kv_heads": 2, "causal": True}, "32x16"),
        ({"seq": 40, "kv_seq": 100, "head_dim": 5, "heads": 1, "causal": True}, "16x16"),
        ({"seq": 100, "kv_seq": 33, "head_dim": 31, "heads": 2, "causal": True}, "32x32"),
        ({"seq": 16, "kv_seq": 2048, "head_dim": 64, "heads": 1}, "16x16"),
        ({"seq": 1, "kv_seq": 1, "head_dim": 1, "heads": 1}, "64x32"),
    ],
)
def test_ragged_shapes_stay_within_the_budget_however_weights_are_rounded(
    workload: Workload, tile: str
) -> None:
    case = _case(workload, tile)
    for truncate in (False, True):
        worst = _worst(case, _emulation(case, truncate=truncate))
        assert 0.0 <= worst < 1.0
    if AttentionShape.of(case).kv_seq > 1:
        assert _worst(case, _emulation(case)) > 0.01


def test_faint_weights_need_the_headroom_where_subnormals_are_flushed() -> None:
    inputs = "n10_faint_majority"
    case = _case({**BASE, **WORKLOADS[inputs]}, inputs=inputs)
    emulation = _emulation(case, flush=True)
    emulation.constants = emulation.constants.without_headroom()
    assert _worst(case, emulation) > 1.0


@pytest.mark.parametrize("size", [100.0, 3000.0, 60000.0])
def test_logits_as_large_as_fp16_makes_them_do_not_overflow_weights(size: float) -> None:
    """q·k reaches 2^38 here, where a step of fp32 is far above the headroom."""
    case = _case({"seq": 8, "kv_seq": 70, "head_dim": 64, "heads": 1})
    rng = np.random.default_rng(1)
    q, k, v = (rng.uniform(-1, 1, (1, n, 64)).astype(np.float16) for n in (8, 70, 70))
    emulation = _emulation(case)
    got = emulation.run(np.float16(size) * q, np.float16(size) * k, v)
    assert np.isfinite(got).all()
    assert emulation.largest <= 2.0**15
    assert np.abs(got).max() <= 1.0


@pytest.mark.parametrize("inputs", ["n15_nan_row", "n15_inf_row"])
def test_a_poisoned_row_changes_no_bit_of_another(inputs: str) -> None:
    workload: Workload = {"seq": 40, "head_dim": 16, "heads": 2}
    outputs: list[np.ndarray[tuple[int, ...], np.dtype[np.float16]]] = []
    for name in ("normal", inputs):
        case = _case(workload, "32x16", inputs=name)
        data = KERNEL.inputs(case)
        outputs.append(_emulation(case).run(data["q"], data["k"], data["v"]))
    clean, poisoned = outputs
    head, row = attention_inputs.poisoned_row(AttentionShape.of(_case(workload)))
    assert not np.isfinite(poisoned[head, row]).any()
    poisoned[head, row] = clean[head, row]
    assert np.array_equal(clean, poisoned)


@pytest.mark.parametrize("tile", ["16x16", "32x16", "64x64"])
@pytest.mark.parametrize(
    "workload",
    [
        {"seq": 100, "head_dim": 20, "heads": 4, "kv_heads": 2},
        {"seq": 100, "head_dim": 20, "heads": 2, "causal": True},
        {"seq": 70, "kv_seq": 33, "head_dim": 16, "heads": 1, "causal": True},
        {"seq": 33, "kv_seq": 70, "head_dim": 16, "heads": 1, "causal": True},
    ],
)
def test_modelled_traffic_is_what_a_counting_loop_moves(workload: Workload, tile: str) -> None:
    case = _case(workload, tile)
    data, emulation = KERNEL.inputs(case), _emulation(case)
    emulation.run(data["q"], data["k"], data["v"])
    cost = KERNEL.cost(case)
    assert cost.bytes_moved == 2 * emulation.moved
    shape = AttentionShape.of(case)
    assert cost.flops == 4 * shape.heads * shape.head_dim * shape.pairs
    assert cost.bytes_min == 2 * (2 * shape.q_count + 2 * shape.kv_count)
