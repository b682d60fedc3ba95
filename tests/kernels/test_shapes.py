"""Any seq and head_dim, grouped-query heads, causal masks: sampled so that every listed size occurs."""

from itertools import product

import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Kernel
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.harness import Bench, make_case

HEAD_DIMS = (1, 3, 5, 31, 33, 63, 65, 80)
SEQS = (1, 3, 9, 12, 16, 33, 40, 63, 65, 127, 129)


def _assert_passes(bench: Bench, loaded: LoadedKernel, cases: list[Case]) -> None:
    wrong = [
        f"{o.case.label}: {o.verdict} {o.reason}"
        for o in bench.run([(loaded, c) for c in cases])
        if o.verdict != "pass"
    ]
    assert not wrong, "\n".join(wrong)


def _swept(kernel: Kernel, vector: int, precision: str) -> list[Case]:
    """Each head_dim and each seq at least once, paired differently for every vector and precision."""
    offset = (vector == 4) + 2 * (precision == "fp32")
    cases: list[Case] = []
    for n, seq in enumerate(SEQS):
        head_dim = HEAD_DIMS[(3 * n + offset) % len(HEAD_DIMS)]
        kv_seq = SEQS[(n + 4) % len(SEQS)] if n % 3 == 0 else seq
        workload: dict[str, AxisValue] = {
            "seq": seq,
            "kv_seq": kv_seq,
            "head_dim": head_dim,
            "heads": 2,
            "kv_heads": 1 + n % 2,
            "causal": n % 4 == 1,
        }
        layout = ("row", "column")[n % 2]
        cases.append(
            make_case(
                kernel,
                workload,
                axes={"tile": "16x16", "precision": precision, "vector": vector, "layout": layout},
            )
        )
    assert {c.workload["head_dim"] for c in cases} == set(HEAD_DIMS)
    return cases


@pytest.mark.parametrize(("precision", "vector"), list(product(("fp32", "fp16_storage"), (1, 4))))
def test_n6_any_size(bench: Bench, loaded: LoadedKernel, precision: str, vector: int) -> None:
    _assert_passes(bench, loaded, _swept(loaded.kernel, vector, precision))


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
