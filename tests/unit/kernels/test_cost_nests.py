"""Every shipped kernel's cost model stands beside a loop nest that counts, and its numbers fit together.

Some nests stand with other tests of their kernels (ELSEWHERE). Here are the others, each computing its output
on the way, and the check that no kernel is without.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Array, Kernel, Reference
from orchestrator.ops.attention_shape import AttentionShape
from orchestrator.planning.expand import expand_blocks
from orchestrator.planning.kernel_folder import load_kernels
from orchestrator.planning.matrix_reader import load_matrix
from orchestrator.planning.prune import Drop, check
from orchestrator.planning.slangc import MISSING
from tests.farm import REPOSITORY
from tests.kernels.harness import make_case
from tests.unit.kernels import (
    test_attention_traffic,
    test_blur_tonemap_cost,
    test_flash_lanes_cost,
    test_gemm_cost,
    test_tiled_sgemm_cost,
)
from tests.unit.kernels.test_attention_traffic import WORKLOADS, Memory
from tests.unit.planning.toy import TODAY

EXAMPLE = REPOSITORY / "docs" / "examples" / "rms_norm" / "kernels"
LOADED = load_kernels(REPOSITORY / "kernels") | load_kernels(EXAMPLE)
KERNELS: dict[str, Kernel] = {name: loaded.kernel for name, loaded in LOADED.items()}
OPS = {name: kernel for name, kernel in KERNELS.items() if kernel.role == "op"}


@dataclass
class Counted:
    """What a nest moved between memory and workgroups, what it computed with, and what came out.

    A sweep over all workgroups, before the end of which nothing of its output can be read, is a dispatch.
    """

    moved: int = 0
    flops: int = 0
    dispatches: int = 0
    output: Array | None = None


SAMPLE = 40
"""Shipped points of a kernel whose costs are looked at."""

Nest = Callable[[Case, dict[str, Array]], Counted]


def _steps(stop: int, step: int) -> Iterator[slice]:
    return (slice(at, min(at + step, stop)) for at in range(0, stop, step))


def _mask(shape: AttentionShape, data: dict[str, Array]) -> Reference:
    """[seq, kv_seq] to add; minus infinity where a bit hides."""
    if shape.mask == "boolean":
        bits = np.unpackbits(data["mask"].astype("<u4").view(np.uint8), axis=1, bitorder="little")
        return np.where(bits[:, : shape.kv_seq] == 1, 0.0, -np.inf)
    return (
        data["mask"].astype(np.float64) if shape.mask == "additive" else np.zeros((shape.seq, shape.kv_seq))
    )


def _attention(case: Case, data: dict[str, Array], *, q_stays: bool) -> Counted:
    """Online softmax of blocks of rows over tiles of keys, q held or read again for each tile."""
    shape, counted = AttentionShape.of(case), Counted()
    br, bc = map(int, str(case.axes["tile"]).split("x"))
    out: Reference = np.zeros((shape.heads, shape.seq, shape.head_dim))
    counted.dispatches += 1
    for head in range(shape.heads):
        q = data["q"][head].astype(np.float64)
        k, v = (shape.compact(data[name])[head // shape.group].astype(np.float64) for name in "kv")
        memory = Memory(shape, data["q"].dtype.itemsize, q, k, v, _mask(shape, data))
        for rows in _steps(shape.seq, br):
            high, total = np.full(rows.stop - rows.start, -np.inf), np.zeros(rows.stop - rows.start)
            held = memory.load(q, range(rows.start, rows.stop)) if q_stays else None
            memory.new_workgroup()
            for keys in _steps(shape.kv_seq, bc):
                span, tile = range(rows.start, rows.stop), range(keys.start, keys.stop)
                if not memory.sees_some(span, tile):
                    continue
                queries = memory.load(q, span) if held is None else held
                logits = memory.logits(queries, memory.load(k, tile), rows.start, keys.start)
                pairs = sum(memory.sees(row, key) for row in span for key in tile)
                counted.flops += 4 * shape.head_dim * pairs
                new = np.maximum(high, logits.max(axis=1))
                shift = np.where(np.isneginf(new), 0.0, new)
                weights, back = np.exp(logits - shift[:, None]), np.exp(high - shift)
                out[head, rows] = out[head, rows] * back[:, None] + weights @ memory.load(v, tile)
                total, high = total * back + weights.sum(axis=1), new
            out[head, rows] /= np.where(total == 0, 1.0, total)[:, None]
            counted.moved += out[head, rows].size * memory.element
        counted.moved += memory.moved
    counted.output = out
    return counted


def blocked(case: Case, data: dict[str, Array]) -> Counted:
    """Chunks of q pass through shared memory with those of k: each tile of keys reads the rows again."""
    return _attention(case, data, q_stays=False)


def q_in_registers(case: Case, data: dict[str, Array]) -> Counted:
    """From the first tile to the last; what a work group reads at once counts once, whoever reads it."""
    return _attention(case, data, q_stays=True)


def scale(case: Case, data: dict[str, Array]) -> Counted:
    counted, values = Counted(), data["o"]
    out: Reference = np.zeros(values.shape)
    counted.dispatches += 1
    for i in range(values.size):
        out[i] = float(values[i]) * int(case.workload["percent"]) / 100
        counted.flops += 1
        counted.moved += 2 * values.itemsize
    counted.output = out
    return counted


def rms_norm(case: Case, data: dict[str, Array]) -> Counted:
    """A row is in the cache of its workgroup once it was read, and so is the weight."""
    x, weight, counted = data["x"].astype(np.float64), data["weight"].astype(np.float64), Counted()
    out: Reference = np.zeros(x.shape)
    counted.dispatches += 1
    for row, values in enumerate(x):
        cached: set[tuple[str, int]] = set()

        def load(
            name: str,
            tensor: Reference,
            i: int,
            cached: set[tuple[str, int]] = cached,
            counted: Counted = counted,
        ) -> float:
            if (name, i) not in cached:
                cached.add((name, i))
                counted.moved += data["x"].itemsize
            return float(tensor[i])

        top, squares = 1.0, 0.0
        for i in range(len(values)):
            top = max(top, abs(load("x", values, i)))
            counted.flops += 1
        for i in range(len(values)):
            squares += (load("x", values, i) / top) ** 2
            counted.flops += 3
        factor = 1 / np.sqrt(squares / len(values) + float(case.workload["eps"]) / top / top)
        for i in range(len(values)):
            out[row, i] = load("x", values, i) / top * factor * load("weight", weight, i)
            counted.moved += data["x"].itemsize
            counted.flops += 3
    counted.output = out
    return counted


HERE: dict[str, tuple[Nest, tuple[dict[str, AxisValue], ...], tuple[dict[str, AxisValue], ...]]] = {
    "attention_flash_blocked": (
        blocked,
        WORKLOADS,
        ({"tile": "16x16", "rows": 4, "chunk": 8}, {"tile": "32x32", "rows": 4, "precision": "fp16_storage"}),
    ),
    "attention_flash_matrix": (q_in_registers, WORKLOADS, ({"tile": "32x16"}, {"tile": "64x32"})),
    "scale": (scale, ({"n": 37, "percent": 50},), ({"precision": "fp32"}, {"precision": "fp16_storage"})),
    "rms_norm": (
        rms_norm,
        ({"rows": 3, "hidden": 10, "eps": "1e-5"},),
        ({"precision": "fp32"}, {"precision": "fp16_storage", "group": 32}),
    ),
}
"""Kernel → its nest, workloads and variants; points that the kernel calls invalid are left out."""

_TRAFFIC = "test_modelled_traffic_is_what_a_counting_loop_nest_moves"
ELSEWHERE: dict[str, tuple[ModuleType, str]] = {
    "attention_naive": (test_attention_traffic, _TRAFFIC),
    "attention_flash": (test_attention_traffic, _TRAFFIC),
    "attention_flash_lanes": (test_flash_lanes_cost, _TRAFFIC),
    "sgemm": (test_gemm_cost, "test_model_is_what_a_loop_nest_counts"),
    "attention_tiled_sgemm": (test_tiled_sgemm_cost, "test_moved_bytes_are_those_that_the_loops_count"),
    "blur_tonemap_two_pass": (test_blur_tonemap_cost, "test_cost_is_what_a_loop_nest_counts"),
    "blur_tonemap_fused": (test_blur_tonemap_cost, "test_cost_is_what_a_loop_nest_counts"),
}


def test_every_kernel_has_a_nest() -> None:
    assert set(HERE) | set(ELSEWHERE) == set(OPS)
    assert all(callable(getattr(module, name)) for module, name in ELSEWHERE.values())


def _points(name: str) -> Iterator[Case]:
    _, workloads, variants = HERE[name]
    for workload in workloads:
        for axes in variants:
            case = _case(KERNELS[name], workload, axes)
            if KERNELS[name].invalid(case) is None:
                yield case


def _case(kernel: Kernel, workload: dict[str, AxisValue], axes: dict[str, AxisValue]) -> Case:
    return make_case(kernel, workload, axes=axes, inputs=kernel.distributions[0])


@pytest.mark.parametrize("name", HERE)
def test_the_model_is_what_the_nest_counts(name: str) -> None:
    kernel, points = KERNELS[name], list(_points(name))
    assert len(points) >= 2
    for case in points:
        data = dict(kernel.inputs(case))
        counted, cost = HERE[name][0](case, data), kernel.cost(case)
        (reference,) = kernel.reference(case, data).values()
        assert counted.output is not None
        np.testing.assert_allclose(counted.output, reference, rtol=1e-9, atol=1e-12, err_msg=case.label)
        assert (cost.bytes_moved, cost.flops) == (counted.moved, counted.flops), case.label
        assert len(kernel.passes(case)) == counted.dispatches, case.label


@pytest.fixture(scope="module")
def shipped() -> dict[str, list[Case]]:
    """Points of all suites, by kernel."""
    matrix = load_matrix(REPOSITORY / "matrix.yaml", KERNELS, TODAY)
    found: dict[str, list[Case]] = {name: [] for name in KERNELS}
    for suite in matrix.suites.values():
        for case, _ in expand_blocks(suite, matrix.excludes):
            found[case.kernel].append(case)
    return found


@pytest.mark.parametrize("name", [name for name in OPS if name != "rms_norm"])
def test_costs_of_shipped_points_fit_together(name: str, shipped: dict[str, list[Case]]) -> None:
    """Compulsory traffic is at most every bound buffer once, an ``inout`` one twice; no variant moves less,
    and variants of one op and workload compute the same number of operations."""
    kernel, flops = KERNELS[name], dict[str, int]()
    assert shipped[name], "in no suite"
    for case in shipped[name][:: max(1, len(shipped[name]) // SAMPLE)]:
        need = check(kernel, case)
        assert not isinstance(need, Drop) or need.reasons == (MISSING,), case.label
        cost = kernel.cost(case)
        crossings = {"in": 1, "out": 1, "inout": 2, "scratch": 0}
        tensors = sum(crossings[b.role] * b.nbytes for b in kernel.buffers(case))
        assert 0 < cost.bytes_min <= tensors, case.label
        assert cost.bytes_min <= cost.bytes_moved, case.label
        assert flops.setdefault(case.workload_id, cost.flops) == cost.flops, case.label


def test_the_figures_of_the_texts_come_out_of_the_models() -> None:
    """12 megapixels of four halves: 384 MB in two passes, 192 fused. Attention: naive writes and reads n²
    scores; flash reads K and V again for every block of rows, which is n² / BR, not n."""
    twelve: dict[str, AxisValue] = {"width": 4000, "height": 3000, "radius": 2}
    half: dict[str, AxisValue] = {"precision": "fp16_storage"}
    moved = [
        KERNELS[name].cost(_case(KERNELS[name], twelve, half)).bytes_moved
        for name in ("blur_tonemap_two_pass", "blur_tonemap_fused")
    ]
    assert moved == [384 * 10**6, 192 * 10**6]

    def traffic(name: str, seq: int, **axes: AxisValue) -> int:
        workload: dict[str, AxisValue] = {"seq": seq, "head_dim": 64, "heads": 1}
        return KERNELS[name].cost(_case(KERNELS[name], workload, axes)).bytes_moved

    assert traffic("attention_naive", 4096) > 4 * 4 * 4096**2
    for rows in (16, 32, 64):
        again = [
            traffic("attention_flash", seq, tile=f"{rows}x16") - 2 * 4 * 64 * seq for seq in (2048, 4096)
        ]
        assert again == [2 * 4 * 64 * seq * (seq // rows) for seq in (2048, 4096)]
    assert traffic("attention_flash", 4096, tile="64x16") < traffic("attention_naive", 4096) / 8
