"""Traffic, geometry and requirements of attention_flash_lanes."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Array, Reference, Subgroups
from orchestrator.ops.attention_shape import AttentionShape
from orchestrator.planning.kernel_folder import load_kernel
from orchestrator.planning.prune import Drop, check
from tests.kernels.harness import KERNELS, make_case

LOADED = load_kernel(KERNELS / "attention_flash_lanes")
BIG: dict[str, AxisValue] = {"seq": 2048, "head_dim": 64, "heads": 32}

WORKLOADS: tuple[dict[str, AxisValue], ...] = (
    {"seq": 21, "head_dim": 8, "heads": 2},
    {"seq": 21, "head_dim": 5, "heads": 4, "kv_heads": 2, "causal": True},
    {"seq": 40, "kv_seq": 9, "head_dim": 12, "heads": 1, "causal": True},
    {"seq": 9, "kv_seq": 50, "head_dim": 20, "heads": 1, "causal": True, "align": "top_left", "window": 3},
    {"seq": 33, "kv_seq": 30, "head_dim": 4, "heads": 1, "window": 9, "mask": "additive"},
    {"seq": 1, "kv_seq": 37, "head_dim": 4, "heads": 2, "kv_rows": 40, "kv_order": "row"},
)


def _case(workload: dict[str, AxisValue], **axes: AxisValue) -> Case:
    return make_case(LOADED.kernel, workload, axes=axes)


@dataclass
class Workgroup:
    """One head's block of rows, run as the template runs it; what it reads and writes."""

    case: Case
    head: int
    first_row: int
    data: dict[str, Array]
    elements: int = 0
    out: dict[int, Reference] = field(default_factory=dict[int, Reference])

    def run(self) -> None:
        shape = AttentionShape.of(self.case)
        (only,) = LOADED.kernel.passes(self.case)
        lanes, per_lane = only.workgroup[0], int(self.case.axes["rows"])
        step = int(str(self.case.axes["tile"]).split("x")[1])
        rows = [self.first_row + lane + r * lanes for lane in range(lanes) for r in range(per_lane)]
        real = [row for row in rows if row < shape.seq]
        self.elements += len(real) * shape.head_dim  # q
        high = dict.fromkeys(real, -np.inf)
        total = dict.fromkeys(real, 0.0)
        self.out = {row: np.zeros(shape.head_dim) for row in real}
        k, v = (shape.compact(self.data[name])[self.head // shape.group].astype(np.float64) for name in "kv")
        for keys in self._steps(shape, max(real), step):
            self.elements += 2 * len(keys) * len(self._read(shape, lanes))
            self.elements += len(real) * len(keys) * (shape.mask == "additive")
            for row in real:
                s = k[keys] @ self.data["q"][self.head, row].astype(np.float64) * shape.scale
                if shape.mask == "additive":
                    s = s + self.data["mask"][row, keys].astype(np.float64)
                seen = (np.array(keys) >= shape.first(row)) & (np.array(keys) < shape.visible(row))
                s = np.where(seen, s, -np.inf)
                new = max(high[row], float(s.max()))
                shift = 0.0 if new == -np.inf else new
                p, back = np.exp(s - shift), np.exp(high[row] - shift)
                high[row], total[row] = new, total[row] * back + p.sum()
                self.out[row] = self.out[row] * back + p @ v[keys]
        self.out = {row: sums / (total[row] or 1.0) for row, sums in self.out.items()}
        self.elements += len(real) * shape.head_dim  # o

    def _steps(self, shape: AttentionShape, last_row: int, step: int) -> Iterator[list[int]]:
        first = shape.first(self.first_row) // step * step
        for key in range(first, shape.visible(last_row), step):
            yield list(range(key, min(key + step, shape.kv_seq)))

    def _read(self, shape: AttentionShape, lanes: int) -> set[int]:
        """Elements of one row of K or V that some invocation reads: by words of four."""
        units, subgroup = -(-shape.head_dim // 4), int(self.case.axes["subgroup"])
        words = (
            {
                min(lane % subgroup + at, units - 1)
                for lane in range(lanes)
                for at in range(0, units, subgroup)
            }
            if subgroup
            else set(range(units))
        )
        return {e for word in words for e in range(4 * word, min(4 * word + 4, shape.head_dim))}


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: " ".join(f"{k}={v}" for k, v in w.items()))
@pytest.mark.parametrize(
    "axes",
    [
        {"tile": "8x4", "rows": 2},
        {"tile": "16x1", "rows": 4, "precision": "fp16_storage"},
        {"tile": "32x2", "rows": 8, "api": "vulkan", "subgroup": 4},
    ],
    ids=["8x4", "16x1-fp16", "32x2-subgroup"],
)
def test_modelled_traffic_is_what_a_counting_loop_nest_moves(
    workload: dict[str, AxisValue], axes: dict[str, AxisValue]
) -> None:
    case = _case(workload, **axes)
    data, shape = dict(LOADED.kernel.inputs(case)), AttentionShape.of(case)
    br = int(str(axes["tile"]).split("x")[0])
    groups = [Workgroup(case, h, row, data) for h in range(shape.heads) for row in range(0, shape.seq, br)]
    got = np.empty((shape.heads, shape.seq, shape.head_dim))
    for group in groups:
        group.run()
        for row, sums in group.out.items():
            got[group.head, row] = sums
    np.testing.assert_allclose(got, LOADED.kernel.reference(case, data)["o"], rtol=1e-9, atol=1e-12)
    moved = sum(group.elements for group in groups) * data["q"].dtype.itemsize
    assert LOADED.kernel.cost(case).bytes_moved == moved
    (only,) = LOADED.kernel.passes(case)
    assert only.grid == (-(-shape.seq // br), shape.heads, 1)


def test_twice_the_rows_halve_the_traffic_of_keys_and_values() -> None:
    tensor = 4 * 2048 * 64 * 32
    assert LOADED.kernel.cost(_case(BIG, tile="32x2")).bytes_moved == tensor * (2 + 2 * 2048 // 32)
    assert LOADED.kernel.cost(_case(BIG, tile="64x2", rows=8)).bytes_moved == tensor * (2 + 2 * 2048 // 64)


@pytest.mark.parametrize(("tile", "rows", "invocations"), [("32x1", 4, 8), ("8x4", 8, 1), ("128x2", 2, 64)])
def test_an_invocation_owns_rows_and_no_shared_memory(tile: str, rows: int, invocations: int) -> None:
    (only,) = LOADED.kernel.passes(_case(BIG, tile=tile, rows=rows))
    assert (only.workgroup, only.shared_bytes) == ((invocations, 1, 1), 0)


def test_shuffles_need_their_features_and_one_size_of_subgroups() -> None:
    case = _case(BIG, api="vulkan", tile="64x2", subgroup=8, precision="fp16_storage")
    assert LOADED.kernel.features(case) == {"pack_half", "subgroup_basic", "subgroup_shuffle"}
    assert LOADED.kernel.passes(case)[0].subgroups == Subgroups(8, 2)
    without = _case(BIG, api="vulkan")
    assert LOADED.kernel.features(without) == frozenset()
    assert LOADED.kernel.passes(without)[0].subgroups is None


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        ({"tile": "32x1", "rows": 6}, "rows 6 does not divide the 32 rows of tile 32x1"),
        ({"api": "gles", "subgroup": 8}, "subgroup 8 needs api vulkan; GLSL ES 3.10 has none"),
        ({"api": "vulkan", "subgroup": 8, "rows": 8}, "subgroup 8 does not divide 4 invocations"),
    ],
)
def test_rows_and_subgroups_that_do_not_fit_are_invalid(axes: dict[str, AxisValue], reason: str) -> None:
    found = check(LOADED.kernel, _case(BIG, **axes))
    assert isinstance(found, Drop)
    assert found.reasons == (reason,)
