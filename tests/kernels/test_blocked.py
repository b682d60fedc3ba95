"""attention_flash_blocked on three drivers: named inputs, shapes, each way to reduce a row, and mutants.

Small workgroups and the short text throughout: software drivers compile the full one for seconds.
"""

from pathlib import Path

import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.attention_mutant import Mutant, assert_all_killed
from tests.kernels.drivers import DRIVERS, driver
from tests.kernels.harness import Bench, Outcome, make_case
from tests.kernels.named_inputs import GROUPS, WORKLOADS, named_case

NAME = "attention_flash_blocked"
TEMPLATE = f"{NAME}/blocked.comp.j2"
SMALL: dict[str, AxisValue] = {"tile": "16x16", "rows": 4, "chunk": 8, "unroll": "short"}
WIDE: dict[str, AxisValue] = {"tile": "64x64", "rows": 8, "chunk": 16, "unroll": "short"}
FOUR_LANES: dict[str, AxisValue] = {"tile": "32x32", "rows": 4, "chunk": 16, "unroll": "short"}
"""Of 32 invocations: more than any software driver runs in step, so that races show."""

SHAPES: tuple[tuple[dict[str, AxisValue], dict[str, AxisValue]], ...] = (
    ({"seq": 33, "head_dim": 5, "heads": 2, "causal": True}, SMALL),
    ({"seq": 32, "head_dim": 8, "heads": 3}, SMALL),
    ({"seq": 1, "kv_seq": 1, "head_dim": 1, "heads": 1}, SMALL),
    ({"seq": 40, "kv_seq": 70, "head_dim": 64, "heads": 4, "kv_heads": 2}, {**FOUR_LANES, "rows": 8}),
    ({"seq": 65, "kv_seq": 17, "head_dim": 80, "heads": 1, "causal": True}, {**WIDE, "rows": 4, "chunk": 32}),
    (
        {"seq": 20, "kv_seq": 127, "head_dim": 128, "heads": 2, "kv_heads": 1, "causal": True},
        {**WIDE, "tile": "64x128"},
    ),
    (
        {"seq": 21, "kv_seq": 40, "head_dim": 8, "heads": 2, "window": 9, "kv_rows": 48, "kv_order": "row"},
        SMALL,
    ),
    ({"seq": 21, "kv_seq": 20, "head_dim": 8, "heads": 2, "causal": True, "align": "top_left"}, SMALL),
    ({"seq": 18, "kv_seq": 40, "head_dim": 8, "heads": 1, "mask": "boolean"}, SMALL),
    ({"seq": 18, "kv_seq": 40, "head_dim": 8, "heads": 1, "mask": "additive"}, SMALL),
)
"""Odd, even, one, GQA, fewer keys than queries (rows without keys), windows, masks, and more."""

SQUARE: dict[str, AxisValue] = {"seq": 40, "head_dim": 8, "heads": 2}
CAUSAL: dict[str, AxisValue] = {"seq": 20, "head_dim": 8, "heads": 1, "causal": True}
MASKED = "tile + 4 * int(lane) + {{ j * half_tile }})"
LOADED_QK = "{{ store_qk(c) }}\n            {{ sync() }}\n"
LOADED_V = '{{ store_v("first") }}\n            {{ sync() }}\n'

MUTANTS = (
    Mutant(
        "no-barrier-before-logits",
        "q and K are read while others still write them",
        ((TEMPLATE, LOADED_QK, "{{ store_qk(c) }}\n"),),
        {"seq": 64, "head_dim": 32, "heads": 2},
        axes=FOUR_LANES,
        race=True,
    ),
    Mutant(
        "no-barrier-before-weighting",
        "weights and values are read while others still write them",
        ((TEMPLATE, LOADED_V, '{{ store_v("first") }}\n'),),
        {"seq": 64, "head_dim": 32, "heads": 2},
        axes=FOUR_LANES,
        race=True,
    ),
    Mutant(
        "output-not-rescaled",
        "the output keeps the scale of the old maximum",
        ((TEMPLATE, '        o{{ i }}_{{ x }} *= {{ of_row("correction", i) }};\n', ""),),
        {"seq": 8, "kv_seq": 128, "head_dim": 8, "heads": 2},
        inputs="n9_rising_logits",
    ),
    Mutant(
        "sum-not-rescaled",
        "the sum of weights keeps the scale of the old maximum",
        ((TEMPLATE, "l{{ h }} * correction{{ h }}", "l{{ h }}"),),
        {"seq": 8, "kv_seq": 128, "head_dim": 8, "heads": 2},
        inputs="n9_rising_logits",
    ),
    Mutant(
        "stale-chunk-of-keys",
        "the second chunk of q meets the first chunk of K",
        ((TEMPLATE, "k_word(kv_head, uint(tile), n, {{ c }})", "k_word(kv_head, uint(tile), n, 0u)"),),
        {"seq": 20, "head_dim": 16, "heads": 2},
    ),
    Mutant(
        "rows-in-a-line",
        "the second four rows of an invocation are taken for those after the first four",
        ((TEMPLATE, "{{ i % 4 + i // 4 * 4 * wave_groups }}", "{{ i }}"),),
        {"seq": 16, "head_dim": 8, "heads": 2},
        breaks=lambda _, row: row >= 4,
        axes={"rows": 8},
        unwritten=True,
    ),
    Mutant(
        "padding-has-weight",
        "keys past the end take part with logit 0",
        (
            (
                f"{NAME}/kernel.py",
                '"hides": shape.hides(g.bc),',
                '"hides": shape.hides(1),',
            ),
        ),
        {"seq": 9, "head_dim": 16, "heads": 1},
        inputs="n7_logit_minus_50",
    ),
    Mutant(
        "sees-the-next-key",
        "the causal limit is one too far",
        ((TEMPLATE, MASKED, MASKED.replace("})", "} - 1)")),),
        CAUSAL,
        breaks=lambda _, row: row != 15,  # whose next key is no key of its block's tiles
    ),
    Mutant(
        "query-head-stride",
        "heads of q and o follow each other every BR rows",
        ((TEMPLATE, "q_first = head * uint(SEQ)", "q_first = head * BR"),),
        SQUARE,
        breaks=lambda _, row: row >= 16,
        race=True,  # between two heads that write the same rows
        unwritten=True,
    ),
    Mutant(
        "ungrouped-heads",
        "query head 1 reads key/value head 1 of its own",
        ((TEMPLATE, "kv_head = head / GROUP", "kv_head = head % 2u"),),
        {**SQUARE, "heads": 4, "kv_heads": 2},
        breaks=lambda head, _: head in (1, 2),
    ),
    Mutant(
        "sum-of-one-lane",
        "a lane divides by the weights of its own keys",
        ((TEMPLATE, '{{ combined("l", "%s + %s") }}\n', ""),),
        SQUARE,
    ),
    Mutant(
        "maximum-of-one-lane",
        "lanes of a row weigh their keys against different maxima",
        ((TEMPLATE, '{{ combined("high", "max(%s, %s)") }}\n', ""),),
        SQUARE,
    ),
    Mutant(
        "nothing-by-nothing",
        "a row without keys divides by its sum",
        ((TEMPLATE, "all == 0.0 ? 0.0 : 1.0 / all", "1.0 / all"),),
        {"seq": 8, "kv_seq": 4, "head_dim": 8, "heads": 2, "causal": True},
        inputs="n4_rows_without_keys",
        breaks=lambda _, row: row < 4,
    ),
)


@pytest.fixture
def blocked(kernels: dict[str, LoadedKernel]) -> LoadedKernel:
    return kernels[NAME]


def _assert_pass(bench: Bench, loaded: LoadedKernel, cases: list[Case]) -> list[Outcome]:
    return bench.passing([(loaded, case) for case in cases])


def _both(precision_of: int) -> str:
    return ("fp32", "fp16_storage")[precision_of % 2]


def test_named_inputs_pass(any_bench: Bench, blocked: LoadedKernel) -> None:
    """Precisions take turns, the other way round on the next driver; inputs that share a shape share a
    program, one after another. lavapipe, which compiles slowly, has a third of the shapes."""
    any_bench.repeats = 0
    turn = DRIVERS.index(any_bench.name)
    cases = [
        named_case(blocked.kernel, inputs, api=any_bench.driver.api, precision=_both(turn + group), **SMALL)
        for group, shape in enumerate(GROUPS)
        if turn != 1 or group % 3 == 0
        for inputs, workload in WORKLOADS.items()
        if str(workload) == shape
    ]
    possible = [case for case in cases if blocked.kernel.invalid(case) is None]
    assert len(possible) == len(cases) - turn % 2, "only beyond_half does not exist in fp16"
    _assert_pass(any_bench, blocked, possible)


def test_shapes_pass(any_bench: Bench, blocked: LoadedKernel) -> None:
    """All on SwiftShader, which compiles soonest, and each on one of the others."""
    any_bench.repeats = 0
    n = DRIVERS.index(any_bench.name)
    cases = [
        make_case(
            blocked.kernel,
            workload,
            axes={"api": any_bench.driver.api, "precision": _both(n + at // 2), **axes},
        )
        for at, (workload, axes) in enumerate(SHAPES)
        if n == 2 or at % 2 == n
    ]
    _assert_pass(any_bench, blocked, cases)


@pytest.mark.parametrize("name", ["llvmpipe", "lavapipe"])
def test_full_text_and_short_text_agree_to_the_bit(name: str, tmp_path: Path, blocked: LoadedKernel) -> None:
    """Loads ahead of their use change no number. (SwiftShader fuses multiply and add where it likes.)"""
    bench = Bench(tmp_path, name, repeats=0)
    workload: dict[str, AxisValue] = {"seq": 33, "kv_seq": 40, "head_dim": 12, "heads": 1, "causal": True}
    cases = [
        make_case(blocked.kernel, workload, axes={**SMALL, "api": driver(name).api, "unroll": unroll})
        for unroll in ("short", "full")
    ]
    short, full = _assert_pass(bench, blocked, cases)
    assert short.numerics.hash == full.numerics.hash


def test_long_heads_loop_over_two_chunks_at_a_time(tmp_path: Path, blocked: LoadedKernel) -> None:
    """The full text past 64 dimensions, where chunks are a loop again; it takes others seconds to compile."""
    axes: dict[str, AxisValue] = {"api": "vulkan", "tile": "32x32", "rows": 4, "chunk": 8, "unroll": "full"}
    workload: dict[str, AxisValue] = {"seq": 20, "kv_seq": 50, "head_dim": 80, "heads": 1}
    bench = Bench(tmp_path, "swiftshader", repeats=0)
    _assert_pass(bench, blocked, [make_case(blocked.kernel, workload, axes=axes)])


def test_shuffles_and_shared_memory_agree_to_the_bit(vulkan_bench: Bench, blocked: LoadedKernel) -> None:
    """Two lanes a row: a sum of two has one order."""
    workload: dict[str, AxisValue] = {"seq": 33, "kv_seq": 50, "head_dim": 12, "heads": 2, "causal": True}
    cases = [
        make_case(blocked.kernel, workload, axes={**SMALL, "api": "vulkan", "subgroup": size})
        for size in (0, 4)
    ]
    shared, shuffled = _assert_pass(vulkan_bench, blocked, cases)
    assert shared.numerics.hash == shuffled.numerics.hash


@pytest.mark.parametrize("name", DRIVERS)
def test_mutants_are_killed_where_they_are_wrong(name: str, tmp_path: Path, blocked: LoadedKernel) -> None:
    """All of them on SwiftShader, races everywhere; the true kernel passes the same cases."""
    api = driver(name).api
    mutants = [m for m in MUTANTS if m.race or name == "swiftshader"]
    broken = [(mutant, mutant.load(tmp_path / "mutants")) for mutant in mutants]
    assert_all_killed(Bench(tmp_path, name, repeats=0), blocked, broken, {**SMALL, "api": api})
