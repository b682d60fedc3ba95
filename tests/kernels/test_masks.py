"""Masks, windows, alignments and caches on the three drivers: N4, N12, N13, G1-04 and G1-10.

Kernels take turns over the drivers. llvmpipe and lavapipe, which compile for a third of a second a case, see
less than SwiftShader; on llvmpipe every input meets both kernels, flash with rows of its own or shared.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Array
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.drivers import DRIVERS, driver
from tests.kernels.harness import Bench, Outcome, make_case
from tests.kernels.named_inputs import MASKED_WORKLOADS, Workload, named_case, sixteen_bits

Turn = tuple[str, dict[str, AxisValue]]
Cases = list[tuple[LoadedKernel, Case]]

TURNS: tuple[Turn, ...] = (
    ("attention_naive", {"layout": "row", "pad": 1}),
    ("attention_flash", {"vector": 1, "layout": "column", "pad": 1}),
    ("attention_flash", {"rows": 2, "pad": 1}),
)
"""All templates, with the axes that other tests leave out."""

BLOCKED: dict[str, AxisValue] = {"tile": "16x16", "rows": 4, "chunk": 8, "unroll": "short"}
SOONEST: dict[str, dict[str, AxisValue]] = {
    "attention_naive": {"tile": "8x8", "vector": 1},
    "attention_flash": {"tile": "8x8", "vector": 1},
    "attention_flash_blocked": BLOCKED,
}
"""Variants that a driver on the processor compiles soonest."""

SHAPES: tuple[Workload, ...] = (
    {"seq": 19, "kv_seq": 40, "head_dim": 12, "causal": True, "align": "top_left"},
    {"seq": 40, "kv_seq": 19, "head_dim": 5, "causal": True, "align": "top_left", "mask": "additive"},
    {"seq": 40, "kv_seq": 70, "head_dim": 8, "causal": True, "window": 17, "mask": "boolean"},
    {"seq": 33, "head_dim": 7, "window": 9, "mask": "additive", "kv_rows": 50},
    {"seq": 21, "kv_seq": 65, "head_dim": 4, "window": 1, "causal": True, "kv_order": "row"},
    {"seq": 50, "kv_seq": 20, "head_dim": 8, "window": 5, "kv_rows": 32, "kv_order": "row"},
    {"seq": 17, "kv_seq": 33, "head_dim": 3, "mask": "boolean", "window": 200, "align": "top_left"},
    {"seq": 1, "kv_seq": 1500, "head_dim": 16, "causal": True, "kv_rows": 1504, "kv_order": "row"},
)
"""Windows of one key, of more keys than there are, and rows that see none; decoding over a long cache."""

HEAD_DIMS = (64, 80, 96, 97, 128, 256)
"""Rows of 97 are no whole words."""
SHARED_ROWS = {"llvmpipe": 64, "swiftshader": 80}
"""Text that is unrolled over head_dim: seconds to compile."""

UNUSED_ROWS: Workload = {"seq": 8, "kv_seq": 37, "head_dim": 8, "heads": 3}
ALL_HEADS: Workload = {"seq": 128, "head_dim": 4, "heads": 20, "kv_heads": 20}


def _way(bench: Bench, number: int) -> dict[str, AxisValue]:
    """fp32 and every way of 16 bits that the driver has, in turn."""
    halves = sixteen_bits(bench.driver.api)
    if "float16" not in bench.driver.features:
        halves = halves[:1]
    ways: list[dict[str, AxisValue]] = [{"precision": "fp32"}]
    for way in halves:
        ways.append({**way})
    return ways[number % len(ways)]


def _case(kernels: dict[str, LoadedKernel], turn: Turn, workload: Workload, **axes: AxisValue) -> Cases:
    loaded = kernels[turn[0]]
    whole: Workload = {"heads": 4, "kv_heads": 2, **workload}
    return [(loaded, make_case(loaded.kernel, whole, axes={"tile": "8x8", **turn[1], **axes}))]


def _run(bench: Bench, cases: Cases) -> list[Outcome]:
    """All right, and exactly 0 where the reference is."""
    bench.keep, bench.repeats = True, 0
    outcomes = bench.passing(cases)
    for outcome in outcomes:
        assert (outcome.values[outcome.reference == 0.0] == 0.0).all(), outcome.case.label
    return outcomes


def test_n4_n12_and_g1_04_masks_as_they_are_spelled(
    any_bench: Bench, kernels: dict[str, LoadedKernel]
) -> None:
    """G1-04: rows that true masks empty are exactly 0, a finite mask over all keys is none."""
    api, lavapipe = any_bench.driver.api, any_bench.name == "lavapipe"
    gles = api == "gles"
    cases: Cases = []
    for n, inputs in enumerate(MASKED_WORKLOADS):
        for at, (name, axes) in enumerate(TURNS):
            if (lavapipe and (n + at) % 3) or (gles and at == 1 + n % 2):
                continue
            way = _way(any_bench, n + at) if inputs != "n4_mask_1e9" else {}
            shape: Workload = {"mask": ("additive", "boolean")[at % 2]} if inputs == "n4_mask_inf" else {}
            loaded = kernels[name]
            cases.append((loaded, named_case(loaded.kernel, inputs, shape, api=api, **axes, **way)))
    outcomes = _run(any_bench, cases)
    assert {o.case.inputs for o in outcomes} == set(MASKED_WORKLOADS)


@pytest.mark.parametrize("name", ["llvmpipe", "swiftshader"])
def test_masked_inputs_pass_in_blocks_of_registers(
    name: str, tmp_path: Path, kernels: dict[str, LoadedKernel]
) -> None:
    """Precisions take turns, the other way round on the other driver. (Tiled attention has its own.)"""
    bench, turn = Bench(tmp_path, name), int(name == "llvmpipe")
    blocked = kernels["attention_flash_blocked"]
    cases: Cases = []
    for n, inputs in enumerate(MASKED_WORKLOADS):
        half = (n + turn) % 2 and inputs != "n4_mask_1e9"
        way: dict[str, AxisValue] = {"precision": "fp16_storage"} if half else {}
        cases.append((blocked, named_case(blocked.kernel, inputs, api=bench.driver.api, **BLOCKED, **way)))
    _run(bench, cases)


@pytest.mark.parametrize("name", ["llvmpipe", "lavapipe"])
def test_g1_04_causality_and_a_mask_together_empty_a_row(
    name: str, tmp_path: Path, kernels: dict[str, LoadedKernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """G1-04 as in the field: 2 heads, 4 rows, 4 keys, causal, and a mask that removes key 0, the only one
    that row 0 sees. Bits and -inf: row 0 is exactly 0. -65504 and -1e9, which are numbers: v of key 0."""
    bench = Bench(tmp_path, name)
    workload: Workload = {"seq": 4, "kv_seq": 4, "head_dim": 8, "heads": 2, "causal": True}
    spellings = (("boolean", -np.inf), ("additive", -np.inf), ("additive", -65504.0), ("additive", -1e9))
    cases: Cases = []
    for kernel, axes in SOONEST.items():
        for mask, value in spellings:
            loaded = _spelled(kernels[kernel], value, monkeypatch)
            shape, variant = {**workload, "mask": mask}, {"api": bench.driver.api, **axes}
            case = make_case(loaded.kernel, shape, inputs="n4_causal_and_mask", axes=variant)
            cases.append((loaded, case))
    for at, outcome in enumerate(_run(bench, cases)):
        assert (outcome.reference[:, 0] == (0.0 if at % 4 < 2 else 1.0)).all()
        assert (outcome.reference[:, 1:] == np.array([2.0, 2.5, 3.0])[:, None]).all()


def _spelled(true: LoadedKernel, value: float, monkeypatch: pytest.MonkeyPatch) -> LoadedKernel:
    """The kernel with inputs whose mask has ``value`` instead of -inf."""
    kernel = copy(true.kernel)

    def inputs(case: Case) -> Mapping[str, Array]:
        made = dict(true.kernel.inputs(case))
        if case.workload["mask"] == "additive":
            made["mask"] = np.where(np.isneginf(made["mask"]), np.float32(value), made["mask"])
        return made

    def data_key(case: Case) -> str:
        return f"{true.kernel.data_key(case)} {value}"

    monkeypatch.setattr(kernel, "inputs", inputs)
    monkeypatch.setattr(kernel, "data_key", data_key)
    return replace(true, kernel=kernel)


def test_windows_alignments_and_caches(any_bench: Bench, kernels: dict[str, LoadedKernel]) -> None:
    api, first = any_bench.driver.api, DRIVERS.index(any_bench.name)
    cases: Cases = []
    for n, workload in enumerate(SHAPES):
        turn = TURNS[(n + first) % 3]
        cases += _case(kernels, turn, workload, api=api, **_way(any_bench, n))
    _run(any_bench, cases)


def test_heads_of_64_to_256_dimensions(any_bench: Bench, kernels: dict[str, LoadedKernel]) -> None:
    api, first = any_bench.driver.api, DRIVERS.index(any_bench.name)
    cases: Cases = []
    for n, head_dim in enumerate(HEAD_DIMS):
        if any_bench.name == "lavapipe" and n % 2:
            continue
        workload: Workload = {"seq": 9, "kv_seq": 20, "head_dim": head_dim, "causal": n % 2 == 0}
        cases += _case(kernels, TURNS[(n + first) % 2], workload, api=api, **_way(any_bench, n + 1))
        if head_dim == SHARED_ROWS.get(any_bench.name):
            cases += _case(kernels, TURNS[2], workload, api=api, **_way(any_bench, n))
    _run(any_bench, cases)


def test_what_does_not_fit_is_refused_by_numbers(kernels: dict[str, LoadedKernel]) -> None:
    flash = kernels["attention_flash"].kernel
    workload: Workload = {"seq": 64, "head_dim": 256, "heads": 1}
    wide, narrow = (make_case(flash, workload, axes={"tile": tile}) for tile in ("64x32", "64x16"))
    assert driver("llvmpipe").refuses(flash, wide) == "shared_bytes 65536 > 32768"
    assert driver("llvmpipe").refuses(flash, narrow) is None
    padded = make_case(flash, workload, axes={"tile": "64x16", "pad": 1})
    assert driver("llvmpipe").refuses(flash, padded) == "shared_bytes 33280 > 32768"


def test_n13_unused_rows_change_no_bit(any_bench: Bench, kernels: dict[str, LoadedKernel]) -> None:
    """5120 rows in memory, 37 in use, NaN in all others, both orders: bit-equal to the compact run."""
    api = any_bench.driver.api
    caches: tuple[Workload, ...] = ({}, {"kv_rows": 5120}, {"kv_rows": 5120, "kv_order": "row"})
    cases: Cases = []
    for at, turn in enumerate(TURNS):
        if any_bench.name == "lavapipe" and at == 0:
            continue
        way = {"precision": "fp16_storage"} if at == 2 else {}
        for cache in caches:
            cases += _case(kernels, turn, {"kv_heads": 3, **UNUSED_ROWS, **cache}, api=api, **way)
    outcomes = _run(any_bench, cases)
    for compact, *others in zip(*(outcomes[n::3] for n in range(3)), strict=True):
        assert {o.numerics.hash for o in others} == {compact.numerics.hash}, compact.case.label


def test_g1_10_a_mask_is_one_for_all_heads_and_aligned_with_rows_and_keys(
    any_bench: Bench, kernels: dict[str, LoadedKernel]
) -> None:
    """G1-10: 20 heads that all differ, 128 rows, a mask without symmetry, K and V as they are and transposed
    (rows first); every element is compared.

    The mutant ``mask_aligned_on_the_left`` is what was found in the field."""
    api, first = any_bench.driver.api, DRIVERS.index(any_bench.name)
    masks, orders = ("additive", "boolean"), ("head", "row")
    cases = [
        pair
        for n, turn in enumerate(TURNS[1:3] if first % 2 else TURNS[:2])
        for pair in _case(
            kernels, turn, {**ALL_HEADS, "kv_order": orders[n], "mask": masks[(n + first) % 2]}, api=api
        )
    ]
    for outcome in _run(any_bench, cases):
        assert outcome.numerics.count == 20 * 128 * 4
        assert len({head.tobytes() for head in outcome.values}) == 20
