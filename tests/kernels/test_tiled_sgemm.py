"""attention_tiled_sgemm on three drivers: named inputs and shapes in one job each, and its mutants.

Small tiles and blocks throughout; named inputs that share a program run one after another.
"""

from pathlib import Path

import pytest

from orchestrator.domain.case import AxisValue
from orchestrator.planning.kernel_folder import LoadedKernel
from orchestrator.planning.render import render_case
from tests.kernels.attention_mutant import assert_all_killed
from tests.kernels.drivers import DRIVERS, driver
from tests.kernels.harness import Bench, make_case
from tests.kernels.mutants_tiled_sgemm import MUTANTS, NAME, SMALL, WIDE
from tests.kernels.named_inputs import named_case

GROUPS = (
    ("n1_logit_151", "n1_logit_12", "n3_logit_minus_60000", "n3_logit_minus_20000"),
    ("n2_dot_73728", "n7_logit_minus_50", "n15_nan_row", "n15_inf_row"),
    ("n4_rows_without_keys",),
    ("n5_first_tile_masked",),
    ("n6_one_key",),
    ("n8_constant_32", "n8_alternating", "n10_faint_majority"),
    ("n9_rising_logits", "n9_last_logit_30"),
    ("n8_constant_40",),
    ("n8_constant_500",),
    ("n4_mask_inf", "n4_mask_65504"),
    ("n4_causal_and_mask",),
    ("n12_score_minus_16", "n12_score_minus_15"),
)
"""Each line has one shape, so that one set of programs serves it."""
FP32_ONLY = ("normal", "beyond_half", "n4_mask_1e9")

SHAPES: tuple[tuple[dict[str, AxisValue], dict[str, AxisValue]], ...] = (
    ({"seq": 33, "kv_seq": 65, "head_dim": 5, "heads": 2, "causal": True}, {"hint": "mediump"}),
    ({"seq": 40, "kv_seq": 70, "head_dim": 33, "heads": 4, "kv_heads": 2}, WIDE),
    ({"seq": 65, "kv_seq": 17, "head_dim": 8, "heads": 1, "causal": True}, {"tile": 16}),
    ({"seq": 9, "kv_seq": 129, "head_dim": 64, "heads": 1}, {"tile": 64, "block": "64x64x16"}),
    (
        {"seq": 1, "kv_seq": 300, "head_dim": 6, "heads": 2, "window": 90, "kv_rows": 310, "kv_order": "row"},
        {"tile": 256},
    ),
    ({"seq": 70, "kv_seq": 50, "head_dim": 8, "heads": 1, "window": 9, "align": "top_left"}, {}),
    ({"seq": 20, "kv_seq": 70, "head_dim": 6, "heads": 2, "mask": "boolean", "causal": True}, {}),
    ({"seq": 20, "kv_seq": 30, "head_dim": 8, "heads": 1, "mask": "additive"}, {}),
)
"""Odd and even, GQA, rows without keys, windows of which some tiles are seen by nobody, masks, a cache."""


@pytest.fixture
def loaded(kernels: dict[str, LoadedKernel]) -> LoadedKernel:
    return kernels[NAME]


def _precision(number: int) -> str:
    return ("fp32", "fp16_storage")[number % 2]


def test_named_inputs_and_shapes_pass(any_bench: Bench, loaded: LoadedKernel) -> None:
    """Precisions take turns, the other way round on the next driver. All shapes on SwiftShader, which
    compiles soonest; on each of the others two of them. lavapipe has a third of the named inputs."""
    any_bench.repeats = 0
    api, turn = any_bench.driver.api, DRIVERS.index(any_bench.name)
    cases = [
        named_case(loaded.kernel, inputs, api=api, precision=_precision(number + turn), **SMALL)
        for number, group in enumerate(GROUPS)
        if any_bench.name != "lavapipe" or number % 3 == 1
        for inputs in group
    ]
    if any_bench.name != "lavapipe":
        cases += [named_case(loaded.kernel, inputs, api=api, **SMALL) for inputs in FP32_ONLY]
        assert {case.inputs for case in cases} == set(loaded.kernel.distributions)
    cases += [
        make_case(
            loaded.kernel,
            shape,
            axes={**SMALL, "precision": _precision(number // 2 + turn), **axes, "api": api},
        )
        for number, (shape, axes) in enumerate(SHAPES)
        if turn == 2 or number % 4 == turn
    ]
    if api == "vulkan":
        cases.append(named_case(loaded.kernel, "n9_rising_logits", api=api, hint="precise", **SMALL))
    any_bench.passing([(loaded, case) for case in cases])


@pytest.mark.parametrize("api", ["gles", "vulkan"])
def test_four_programs_serve_all_dispatches(api: str, loaded: LoadedKernel) -> None:
    """At 2,048 keys in tiles of 64: 97 dispatches."""
    shape: dict[str, AxisValue] = {"seq": 128, "kv_seq": 2048, "head_dim": 64, "heads": 2}
    passes = render_case(loaded, make_case(loaded.kernel, shape, axes={"api": api, "tile": 64})).passes
    assert len(passes) == 3 * 32 + 1
    assert len({(p.glsl, p.constants, len(p.values)) for p in passes}) == 4
    assert [p.values for p in passes if p.template == "softmax.comp.j2"] == [
        (tile, int(tile == 0)) for tile in range(32)
    ]


@pytest.mark.parametrize("name", DRIVERS)
def test_mutants_are_killed_where_they_are_wrong(name: str, tmp_path: Path, loaded: LoadedKernel) -> None:
    """All of them on SwiftShader, which compiles soonest; races everywhere. The true kernel passes them all.

    One job, each case first with the true kernel: mutants then find all programs compiled but their own."""
    api = driver(name).api
    mutants = [m for m in MUTANTS if m.race or name == "swiftshader"]
    broken = [(mutant, mutant.load(tmp_path / "mutants")) for mutant in mutants]
    assert_all_killed(Bench(tmp_path, name, repeats=0), loaded, broken, {**SMALL, "api": api})
