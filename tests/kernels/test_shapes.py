"""Any seq and head_dim, grouped-query heads, causal masks: sampled so that every listed size occurs."""

from itertools import product

import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Kernel
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.harness import Bench, make_case
from tests.kernels.named_inputs import PRECISIONS, SIXTEEN_BITS

HEAD_DIMS = (1, 3, 5, 31, 33, 63, 65, 80)
COMBINATIONS = tuple(product(PRECISIONS, (1, 4)))
SEQS = (1, 3, 9, 12, 16, 33, 40, 63, 65, 127, 129)


def _assert_passes(bench: Bench, loaded: LoadedKernel, cases: list[Case]) -> None:
    bench.passing([(loaded, c) for c in cases])


def _swept(kernel: Kernel, number: int) -> list[Case]:
    """One of four parts: together every head_dim and seq at least twice, with changing variants."""
    cases: list[Case] = []
    for n in range(number, 2 * len(SEQS), 4):
        precision, vector = COMBINATIONS[(n + n // 8) % 4]
        seq = SEQS[n % len(SEQS)]
        workload: dict[str, AxisValue] = {
            "seq": seq,
            "kv_seq": SEQS[(n + 4) % len(SEQS)] if n % 3 == 0 else seq,
            "head_dim": HEAD_DIMS[n % len(HEAD_DIMS)],
            "heads": 2,
            "kv_heads": 1 + n % 2,
            "causal": n % 4 == 1,
        }
        layout = ("row", "column")[n // 2 % 2]
        axes: dict[str, AxisValue] = {
            "tile": "16x16",
            "precision": precision,
            "vector": vector,
            "layout": layout,
        }
        cases.append(make_case(kernel, workload, axes=axes))
    return cases


@pytest.mark.parametrize("number", range(4))
def test_n6_any_size(bench: Bench, loaded: LoadedKernel, number: int) -> None:
    _assert_passes(bench, loaded, _swept(loaded.kernel, number))


def test_the_sweep_holds_every_size(loaded: LoadedKernel) -> None:
    cases = [case for number in range(4) for case in _swept(loaded.kernel, number)]
    assert {c.workload["head_dim"] for c in cases} == set(HEAD_DIMS)
    assert {c.workload["seq"] for c in cases} == set(SEQS)
    assert {(c.axes["precision"], c.axes["vector"]) for c in cases} == set(COMBINATIONS)


def _swept_on_vulkan(kernel: Kernel, number: int) -> list[Case]:
    """One of two parts: together every head_dim and seq, each in fp32 or packed storage and in 16 bits."""
    cases: list[Case] = []
    for n in range(number, len(SEQS), 2):
        seq = SEQS[n]
        workload: dict[str, AxisValue] = {
            "seq": seq,
            "kv_seq": SEQS[(n + 4) % len(SEQS)] if n % 3 == 0 else seq,
            "head_dim": HEAD_DIMS[(n + 3) % len(HEAD_DIMS)],
            "heads": 2,
            "kv_heads": 1 + n % 2,
            "causal": n % 4 == 1,
        }
        for way in (({"precision": "fp32"}, SIXTEEN_BITS[0])[n // 2 % 2], SIXTEEN_BITS[1 + n % 5]):
            axes: dict[str, AxisValue] = {
                "api": "vulkan",
                "tile": "16x16",
                "vector": (1, 4)[n // 2 % 2],
                "layout": ("row", "column")[n // 4 % 2],
                **way,
            }
            cases.append(make_case(kernel, workload, axes=axes))
    return cases


@pytest.mark.parametrize("number", range(2))
def test_n6_any_size_on_vulkan(vulkan_bench: Bench, loaded: LoadedKernel, number: int) -> None:
    possible = vulkan_bench.possible(loaded, _swept_on_vulkan(loaded.kernel, number))
    assert len(possible) >= len(SEQS) // 2
    _assert_passes(vulkan_bench, loaded, [case for _, case in possible])


def test_the_sweep_on_vulkan_holds_every_size_and_every_way(loaded: LoadedKernel) -> None:
    cases = [case for number in range(2) for case in _swept_on_vulkan(loaded.kernel, number)]
    assert {c.workload["head_dim"] for c in cases} == set(HEAD_DIMS)
    assert {c.workload["seq"] for c in cases} == set(SEQS)
    ways = {(c.axes["precision"], c.axes["halves"]) for c in cases}
    assert ways == {("fp32", "packed"), *((w["precision"], w["halves"]) for w in SIXTEEN_BITS)}


@pytest.mark.parametrize("hint", ["mediump", "precise"])
def test_hints_pass_on_vulkan(vulkan_bench: Bench, loaded: LoadedKernel, hint: str) -> None:
    workload: dict[str, AxisValue] = {"seq": 65, "head_dim": 16, "heads": 2, "causal": True}
    ways = ({"precision": "fp32"}, *SIXTEEN_BITS)
    cases = [
        make_case(loaded.kernel, workload, axes={"api": "vulkan", "tile": "16x16", "hint": hint, **way})
        for way in ways
    ]
    possible = vulkan_bench.possible(loaded, cases)
    assert len(possible) >= 2
    _assert_passes(vulkan_bench, loaded, [case for _, case in possible])


@pytest.mark.parametrize("rows", [2, 4])
def test_any_size_with_shared_rows(bench: Bench, kernels: dict[str, LoadedKernel], rows: int) -> None:
    flash = kernels["attention_flash"]
    sizes = [
        (33, 33, 5, True),
        (65, 127, 31, True),
        (129, 129, 16, False),
        (40, 12, 6, True),
        (1, 1, 1, False),
    ]
    cases = [
        make_case(
            flash.kernel,
            {"seq": seq, "kv_seq": kv_seq, "head_dim": head_dim, "heads": 2, "kv_heads": 1, "causal": causal},
            axes={
                "tile": ("16x16", "32x32")[n % 2],
                "precision": PRECISIONS[(n + rows // 2) % 2],
                "rows": rows,
            },
        )
        for n, (seq, kv_seq, head_dim, causal) in enumerate(sizes)
    ]
    _assert_passes(bench, flash, cases)


def test_every_tile(bench: Bench, loaded: LoadedKernel) -> None:
    (tiles,) = [axis.values for axis in loaded.kernel.axes if axis.name == "tile"]
    assert tiles is not None
    workload: dict[str, AxisValue] = {"seq": 130, "head_dim": 12, "heads": 1, "causal": True}
    _assert_passes(bench, loaded, [make_case(loaded.kernel, workload, axes={"tile": tile}) for tile in tiles])


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


@pytest.mark.parametrize("seed", [2, 3, 4, 5])
def test_true_kernels_pass_with_other_seeds(bench: Bench, loaded: LoadedKernel, seed: int) -> None:
    workload: dict[str, AxisValue] = {"seq": 65, "head_dim": 16, "heads": 2}
    cases = [
        make_case(
            loaded.kernel,
            workload,
            seed=seed,
            axes={"tile": "16x16", "precision": precision, "hint": hint},
        )
        for precision, hint in product(("fp32", "fp16_storage"), ("highp", "mediump"))
    ]
    _assert_passes(bench, loaded, cases)
