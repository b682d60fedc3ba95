"""attention_flash_blocked in 16-bit arithmetic on lavapipe: named inputs, shapes and mutants.

Its text is always written out, so workgroups are as small as they get: lavapipe compiles each for a second.
"""

from pathlib import Path

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue
from orchestrator.domain.kernel import Subgroups
from orchestrator.ops.attention_budget import Arithmetic, attention_tolerance
from orchestrator.ops.attention_shape import AttentionShape
from orchestrator.planning.kernel_folder import LoadedKernel
from orchestrator.planning.prune import Drop, check
from orchestrator.planning.render import render_case
from tests.kernels.attention_mutant import Mutant, assert_all_killed
from tests.kernels.harness import Bench, make_case
from tests.kernels.named_inputs import BASE, MASKED_WORKLOADS, WORKLOADS
from tests.unit.kernels.test_cost_nests import q_in_registers

NAME = "attention_flash_blocked"
TEMPLATE = f"{NAME}/halves.comp.j2"
SMALL: dict[str, AxisValue] = {
    "api": "vulkan",
    "precision": "fp16",
    "tile": "16x16",
    "rows": 4,
    "chunk": 8,
    "subgroup": 4,
}
FOUR_LANES: dict[str, AxisValue] = {**SMALL, "tile": "32x32", "subgroup": 8}
BIG: dict[str, AxisValue] = {"seq": 2048, "head_dim": 64, "heads": 32}

REFUSED = {"n10_faint_majority", "beyond_half", "n4_mask_1e9"}
"""Inputs that fp16 cannot hold or a device may flush."""

SHAPES: tuple[tuple[dict[str, AxisValue], dict[str, AxisValue]], ...] = (
    ({"seq": 33, "kv_seq": 40, "head_dim": 24, "heads": 4, "kv_heads": 2, "causal": True}, FOUR_LANES),
    (
        {"seq": 20, "kv_seq": 34, "head_dim": 8, "heads": 1, "window": 9, "kv_rows": 40, "kv_order": "row"},
        SMALL,
    ),
    (
        {"seq": 17, "kv_seq": 34, "head_dim": 8, "heads": 1, "mask": "boolean"},
        {**SMALL, "tile": "32x32", "rows": 8, "subgroup": 8},
    ),
    ({"seq": 17, "kv_seq": 34, "head_dim": 8, "heads": 1, "mask": "additive"}, SMALL),
)
"""Two chunks, GQA, ragged blocks, rows without keys, eight rows an invocation, windows and masks."""

ODD: dict[str, AxisValue] = {
    "seq": 16,
    "kv_seq": 17,
    "head_dim": 8,
    "heads": 4,
    "kv_heads": 2,
    "kv_rows": 24,
}
"""Most mutants share it, as the true kernel takes a second to compile for each shape."""
EMPTY_ROWS: dict[str, AxisValue] = {"seq": 20, "kv_seq": 17, "head_dim": 8, "heads": 1, "causal": True}
WIDE: dict[str, AxisValue] = {"seq": 32, "head_dim": 8, "heads": 2}
KEYS = "{{ j // 4 * 4 * lanes + j % 4 }}"
LOADED_K = "kf{{ x }});\n{% endfor %}\n"
LOADED_V = "zip(vf{{ 2 * x }}.zw, vf{{ 2 * x + 1 }}.zw);\n        }\n{% endfor %}\n"

MUTANTS = (
    Mutant(
        "one-run",
        "odd dimensions are left out",
        ((TEMPLATE, "_{{ j }}.x + s{{ i }}_{{ j }}.y", "_{{ j }}.x"),),
        ODD,
    ),
    Mutant(
        "one-run-of-values",
        "odd keys are left out",
        ((TEMPLATE, "_{{ j }}.x + a{{ i }}_{{ j }}.y", "_{{ j }}.x"),),
        ODD,
    ),
    Mutant(
        "even-keys-twice",
        "pairs of values hold one key",
        (
            (
                TEMPLATE,
                "zip(vf{{ 2 * x }}.xy, vf{{ 2 * x + 1 }}.xy)",
                "zip(vf{{ 2 * x }}.xy, vf{{ 2 * x }}.xy)",
            ),
        ),
        ODD,
    ),
    Mutant(
        "q-not-scaled",
        "logits are not scaled",
        ((TEMPLATE, "unpackHalf2x16(pair) * SCALE", "unpackHalf2x16(pair)"),),
        ODD,
    ),
    Mutant(
        "output-not-rescaled",
        "the output keeps the scale of the old maximum",
        ((TEMPLATE, "o{{ i }}_{{ x }} *= correction;", ""),),
        {"seq": 16, "kv_seq": 128, "head_dim": 8, "heads": 1},
        inputs="n9_rising_logits",
    ),
    Mutant(
        "sees-the-next-key",
        "masks are one key too far",
        ((TEMPLATE, KEYS, KEYS + " - 1"),),
        EMPTY_ROWS,
        inputs="n4_rows_without_keys",
    ),
    Mutant(
        "stale-keys",
        "the second tile meets the first one's K",
        ((TEMPLATE, 'load_k("next", 0)', 'load_k("uint(tile)", 0)'),),
        {"seq": 16, "kv_seq": 128, "head_dim": 8, "heads": 1},
        inputs="n9_last_logit_30",
    ),
    Mutant(
        "nothing-by-nothing",
        "a row without keys divides by its sum",
        ((TEMPLATE, "m{{ i }} == NEG_INF ? 0.0 : 1.0 / l{{ i }}", "1.0 / l{{ i }}"),),
        EMPTY_ROWS,
        inputs="n4_rows_without_keys",
        breaks=lambda _, row: row < 3,
    ),
    Mutant(
        "last-key-left-out",
        "a tile that holds one key only is left out",
        ((TEMPLATE, "visible_keys(min(int(first_row + BR), SEQ) - 1);", "KV_SEQ - 1;"),),
        EMPTY_ROWS,
        inputs="n4_rows_without_keys",
        breaks=lambda _, row: row == 19,
    ),
    Mutant(
        "ungrouped-heads",
        "query head 1 reads key/value head 1 of its own",
        ((TEMPLATE, "kv_head = head / GROUP", "kv_head = head % 2u"),),
        ODD,
        breaks=lambda head, _: head in (1, 2),
    ),
    Mutant(
        "unused-values",
        "the last tile has the value of an unused row, whose weight of 0 does not undo NaN (N13)",
        (
            (
                TEMPLATE,
                """"key >= uint(KV_SEQ) ? uvec4(0u) : " if partial }}data_v""",
                """"key > uint(KV_SEQ) ? uvec4(0u) : " if partial }}data_v""",
            ),
        ),
        ODD,
    ),
    Mutant(
        "no-barrier-before-logits",
        "K is read while others still write it",
        ((TEMPLATE, LOADED_K + "        barrier();\n", LOADED_K),),
        WIDE,
        axes=FOUR_LANES,
        race=True,
    ),
    Mutant(
        "no-barrier-before-weighting",
        "values are read while others still write them",
        ((TEMPLATE, LOADED_V + "        barrier();\n", LOADED_V),),
        WIDE,
        axes=FOUR_LANES,
        race=True,
    ),
)


@pytest.fixture
def blocked(kernels: dict[str, LoadedKernel]) -> LoadedKernel:
    return kernels[NAME]


def test_named_inputs_pass(tmp_path: Path, blocked: LoadedKernel) -> None:
    """All that exist in fp16; those of one shape, one after another, share a program."""
    shapes = {**WORKLOADS, **MASKED_WORKLOADS, "n6_one_key": {"kv_seq": 1, "kv_heads": 1}}
    cases = [
        make_case(blocked.kernel, {**BASE, **shape}, inputs=name, axes=SMALL)
        for name, shape in sorted(shapes.items(), key=lambda item: str(item[1]))
    ]
    possible = [case for case in cases if blocked.kernel.invalid(case) is None]
    assert {case.inputs for case in possible} == set(blocked.kernel.distributions) - REFUSED
    bench = Bench(tmp_path, "lavapipe", repeats=0, unoptimised=True)
    bench.passing([(blocked, case) for case in possible])


def test_shapes_pass(tmp_path: Path, blocked: LoadedKernel) -> None:
    cases = [make_case(blocked.kernel, workload, axes=axes) for workload, axes in SHAPES]
    Bench(tmp_path, "lavapipe").passing([(blocked, case) for case in cases])


def test_mutants_are_killed_where_they_are_wrong(tmp_path: Path, blocked: LoadedKernel) -> None:
    broken = [(mutant, mutant.load(tmp_path / "mutants")) for mutant in MUTANTS]
    bench = Bench(tmp_path, "lavapipe", repeats=0, unoptimised=True)
    assert_all_killed(bench, blocked, broken, SMALL)


@pytest.mark.parametrize(
    ("head_dim", "tile", "chunk", "shared_bytes", "invocations"),
    [
        (64, "128x128", 32, 41_984, 256),
        (128, "128x64", 32, 46_208, 256),
        (8, "16x16", 8, 1_536, 8),
    ],
)
def test_declared_sizes_are_those_of_the_text(
    blocked: LoadedKernel, head_dim: int, tile: str, chunk: int, shared_bytes: int, invocations: int
) -> None:
    """q and as many weights as an H200 has room for: 48 KiB."""
    subgroup = min(32, invocations)
    axes: dict[str, AxisValue] = {**SMALL, "tile": tile, "chunk": chunk, "subgroup": subgroup}
    case = make_case(blocked.kernel, {**BIG, "head_dim": head_dim}, axes=axes)
    (only,) = render_case(blocked, case).passes
    assert (only.shared_bytes, only.workgroup) == (shared_bytes, (invocations, 1, 1))
    assert f"shared uvec4 sm[{shared_bytes // 16}];" in only.glsl
    assert f"local_size_x = {invocations}," in only.glsl
    (declared,) = blocked.kernel.passes(case)
    assert declared.subgroups == Subgroups(subgroup, invocations // subgroup)


@pytest.mark.parametrize(
    ("head_dim", "axes", "reason"),
    [
        (64, {"subgroup": 0}, "precision fp16 needs subgroup: weights stay within one"),
        (20, {}, "precision fp16 reads words of 8 halves; head_dim 20 is no multiple of it"),
        (64, {"api": "gles", "subgroup": 0}, "precision fp16 needs api vulkan; on GLES use hint mediump"),
    ],
)
def test_what_it_cannot_do_is_refused(
    blocked: LoadedKernel, head_dim: int, axes: dict[str, AxisValue], reason: str
) -> None:
    found = check(
        blocked.kernel, make_case(blocked.kernel, {**BIG, "head_dim": head_dim}, axes={**SMALL, **axes})
    )
    assert isinstance(found, Drop)
    assert found.reasons == (reason,)


def test_values_that_a_run_cannot_sum_are_refused(blocked: LoadedKernel) -> None:
    """64 values of 2048 exceed fp16; on shapes with fewer keys they do not."""
    axes: dict[str, AxisValue] = {**SMALL, "tile": "128x128", "subgroup": 32}
    workload: dict[str, AxisValue] = {"seq": 8, "head_dim": 8, "heads": 1}
    many = make_case(blocked.kernel, {**workload, "kv_seq": 128}, inputs="n5_first_tile_masked", axes=axes)
    few = make_case(blocked.kernel, {**workload, "kv_seq": 32}, inputs="n5_first_tile_masked", axes=axes)
    why = blocked.kernel.invalid(many)
    assert why == "inputs n5_first_tile_masked: 64 values of 2048 in one fp16 sum > 65504"
    assert blocked.kernel.invalid(few) is None


@pytest.mark.parametrize(
    "workload",
    [
        {"seq": 40, "head_dim": 8, "heads": 2, "kv_heads": 1},
        {"seq": 33, "kv_seq": 20, "head_dim": 8, "heads": 1, "causal": True},
        {"seq": 20, "kv_seq": 50, "head_dim": 8, "heads": 1, "window": 9, "mask": "boolean"},
    ],
)
def test_q_is_read_once_k_and_v_for_every_block(
    blocked: LoadedKernel, workload: dict[str, AxisValue]
) -> None:
    case = make_case(blocked.kernel, workload, axes=SMALL)
    counted = q_in_registers(case, dict(blocked.kernel.inputs(case)))
    cost = blocked.kernel.cost(case)
    assert (cost.bytes_moved, cost.flops) == (counted.moved, counted.flops)


def test_budget_grows_with_the_length_of_a_run(blocked: LoadedKernel) -> None:
    """From none to sums of eight and of 64 terms in fp16."""
    q, k, v = (np.random.default_rng(n).standard_normal((1, 256, 8)).astype(np.float16) for n in range(3))
    shape = AttentionShape(seq=256, kv_seq=256, head_dim=8, heads=1, kv_heads=1, causal=False)
    runs = [
        Arithmetic(half_output=True, mediump=False, online=True, half_products=True, half_run=n)
        for n in (0, 8, 64)
    ]
    single, short, long = (attention_tolerance(q, k, v, shape, run).atol for run in runs)
    assert single < short < long < 10 * single
