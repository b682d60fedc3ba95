"""Any seq and head_dim, grouped-query heads, causal masks: sampled so that every listed size occurs.

Text that is unrolled over a long row takes llvmpipe and lavapipe seconds to compile: they have vector 1
there, SwiftShader has both.
"""

import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Kernel
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.drivers import DRIVERS, driver
from tests.kernels.harness import Bench, make_case
from tests.kernels.named_inputs import PRECISIONS, SIXTEEN_BITS

HEAD_DIMS = (1, 3, 5, 31, 33, 63, 65, 80)
SEQS = (1, 3, 9, 12, 16, 33, 40, 63, 65, 127, 129)
LONG = 60


def _swept(kernel: Kernel, name: str) -> list[Case]:
    """Every seq and every head_dim, another pair of them on every driver, with changing variants."""
    turn = DRIVERS.index(name)
    cases: list[Case] = []
    for n, seq in enumerate(SEQS):
        head_dim = HEAD_DIMS[(n + 3 * turn) % len(HEAD_DIMS)]
        workload: dict[str, AxisValue] = {
            "seq": seq,
            "kv_seq": SEQS[(n + 4) % len(SEQS)] if n % 3 == turn else seq,
            "head_dim": head_dim,
            "heads": 2,
            "kv_heads": 1 + n % 2,
            "causal": n % 4 == 1,
        }
        slow = head_dim > LONG and name != "swiftshader"
        half = (n + turn) % 2 == 1 and not (slow and head_dim % 2)
        axes: dict[str, AxisValue] = {
            "api": driver(name).api,
            "tile": "16x16",
            "vector": 1 if slow else (1, 4)[n // 2 % 2],
            "layout": ("row", "column")[n // 4 % 2],
            "precision": PRECISIONS[half],
        }
        if half and name == "lavapipe":
            axes |= SIXTEEN_BITS[n % len(SIXTEEN_BITS)]
        cases.append(make_case(kernel, workload, axes=axes))
    return cases


def test_n6_any_size(any_bench: Bench, loaded: LoadedKernel) -> None:
    any_bench.repeats = 0
    any_bench.passing([(loaded, case) for case in _swept(loaded.kernel, any_bench.name)])


def test_the_sweep_holds_every_size_on_every_driver(loaded: LoadedKernel) -> None:
    """And both precisions with both vectors."""
    for name in DRIVERS:
        cases = _swept(loaded.kernel, name)
        assert {c.workload["head_dim"] for c in cases} == set(HEAD_DIMS)
        assert {c.workload["seq"] for c in cases} == set(SEQS)
        assert len({(c.axes["precision"] == "fp32", c.axes["vector"]) for c in cases}) == 4


def test_hints_pass_on_vulkan(vulkan_bench: Bench, loaded: LoadedKernel) -> None:
    """mediump in fp32 and in 16 bits, and exact multiply-adds in 16 bits."""
    workload: dict[str, AxisValue] = {"seq": 33, "head_dim": 8, "heads": 2, "causal": True}
    first = SIXTEEN_BITS[0]
    others = (first, first) if vulkan_bench.name == "swiftshader" else (SIXTEEN_BITS[1], SIXTEEN_BITS[3])
    ways = zip(
        ("mediump", "mediump", "precise", "precise"),
        ({"precision": "fp32"}, others[0], first, others[1]),
        strict=True,
    )
    cases = [
        make_case(loaded.kernel, workload, axes={"api": "vulkan", "tile": "8x8", "hint": hint, **way})
        for hint, way in ways
    ]
    vulkan_bench.passing([(loaded, case) for case in cases])


def test_any_size_with_shared_rows(any_bench: Bench, kernels: dict[str, LoadedKernel]) -> None:
    """2 and 4 rows in turns, the other way round on the next driver."""
    any_bench.repeats = 0
    turn = DRIVERS.index(any_bench.name)
    flash = kernels["attention_flash"]
    sizes = [
        (33, 33, 5, True),
        (65, 127, 13, True),
        (129, 129, 8, False),
        (40, 12, 6, True),
        (1, 1, 1, False),
    ]
    cases = [
        make_case(
            flash.kernel,
            {"seq": seq, "kv_seq": kv_seq, "head_dim": head_dim, "heads": 2, "kv_heads": 1, "causal": causal},
            axes={
                "api": any_bench.driver.api,
                "tile": ("16x16", "32x32")[n % 2],
                "precision": PRECISIONS[n // 2 % 2],
                "rows": (2, 4)[(n + turn) % 2],
            },
        )
        for n, (seq, kv_seq, head_dim, causal) in enumerate(sizes)
    ]
    any_bench.passing([(flash, case) for case in cases])


def test_every_tile(bench: Bench, loaded: LoadedKernel) -> None:
    (tiles,) = [axis.values for axis in loaded.kernel.axes if axis.name == "tile"]
    assert tiles is not None
    workload: dict[str, AxisValue] = {"seq": 130, "head_dim": 4, "heads": 1, "causal": True}
    cases = [make_case(loaded.kernel, workload, axes={"tile": tile}) for tile in tiles]
    bench.passing([(loaded, case) for case in cases])


@pytest.mark.parametrize("causal", [False, True])
def test_g1_10_all_heads_differ_and_are_compared_element_by_element(
    bench: Bench, loaded: LoadedKernel, causal: bool
) -> None:
    workload: dict[str, AxisValue] = {
        "seq": 24,
        "kv_seq": 40,
        "head_dim": 8,
        "heads": 20,
        "kv_heads": 5,
        "causal": causal,
    }
    bench.keep = True
    (outcome,) = bench.run([(loaded, make_case(loaded.kernel, workload, axes={"tile": "8x8"}))])
    assert outcome.verdict == "pass", outcome.reason
    assert outcome.numerics.count == 20 * 24 * 8
    assert outcome.tensor is not None
    heads = {outcome.tensor[h].tobytes() for h in range(20)}
    assert len(heads) == 20
