"""attention_flash_lanes on three drivers: named inputs, shapes, shuffled and plain reads, and mutants.

Few rows and short heads: software drivers compile the text, which grows with both.
"""

from pathlib import Path

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernel
from tests.kernels.attention_mutant import Mutant
from tests.kernels.broken import Outcomes, assert_true_kernels_pass, mutant_outcomes, seed_of
from tests.kernels.drivers import DRIVERS
from tests.kernels.harness import KERNELS, Bench, make_case
from tests.kernels.named_inputs import MASKED_WORKLOADS, PRECISIONS, WORKLOADS, named_case

NAME = "attention_flash_lanes"
TEMPLATE = f"{NAME}/lanes.comp.j2"
SUBGROUP = {"llvmpipe": 0, "lavapipe": 8, "swiftshader": 4}
"""Of each driver; GLES has none."""
SMALL: dict[str, AxisValue] = {"tile": "16x2", "rows": 2}
EVERY = WORKLOADS | MASKED_WORKLOADS

SHAPES: tuple[tuple[dict[str, AxisValue], dict[str, AxisValue]], ...] = (
    ({"seq": 33, "head_dim": 5, "heads": 2, "causal": True}, {"tile": "32x1", "rows": 4}),
    ({"seq": 40, "kv_seq": 35, "head_dim": 20, "heads": 4, "kv_heads": 2}, {"tile": "64x2", "rows": 8}),
    ({"seq": 1, "kv_seq": 1, "head_dim": 1, "heads": 1}, {"tile": "8x1", "rows": 1}),
    ({"seq": 35, "kv_seq": 17, "head_dim": 36, "heads": 1, "causal": True}, {"tile": "16x1", "rows": 2}),
    ({"seq": 20, "kv_seq": 45, "head_dim": 12, "heads": 2, "causal": True, "window": 7}, SMALL),
    ({"seq": 9, "kv_seq": 21, "kv_rows": 24, "kv_order": "row", "head_dim": 4, "heads": 2}, SMALL),
    ({"seq": 20, "kv_seq": 45, "head_dim": 8, "heads": 2, "mask": "additive"}, {"tile": "8x4", "rows": 1}),
    ({"seq": 20, "kv_seq": 45, "head_dim": 8, "heads": 2, "mask": "boolean", "window": 9}, SMALL),
)
"""Odd, one, GQA, fewer keys than queries (rows without keys), words that do not fill a subgroup, a window,
unused rows of a cache (NaN), masks."""

SQUARE: dict[str, AxisValue] = {"seq": 40, "head_dim": 8, "heads": 2}
CAUSAL: dict[str, AxisValue] = {"seq": 20, "head_dim": 8, "heads": 1, "causal": True}
OUTPUT = "o{{ r }}_{{ i }} * correction{{ r }}{% for"
MASKED = "masked(s{{ r }}_{{ k }}, row{{ r }}, key + {{ k }})"

MUTANTS = (
    Mutant(
        "output-not-rescaled",
        "the output keeps the scale of the old maximum",
        ((TEMPLATE, OUTPUT, OUTPUT.replace(" * correction{{ r }}", "")),),
        {"seq": 8, "kv_seq": 128, "head_dim": 8, "heads": 2},
        inputs="n9_rising_logits",
    ),
    Mutant(
        "sum-not-rescaled",
        "the sum of weights keeps the scale of the old maximum",
        ((TEMPLATE, "        l{{ r }} *= correction{{ r }};\n", ""),),
        {"seq": 8, "kv_seq": 128, "head_dim": 8, "heads": 2},
        inputs="n9_rising_logits",
    ),
    Mutant(
        "padding-has-weight",
        "the last key, read again past the end, takes part again",
        (
            (
                f"{NAME}/kernel.py",
                '"hides": shape.hides(bc),',
                '"hides": shape.hides(1),',
            ),
        ),
        {"seq": 9, "kv_seq": 5, "head_dim": 8, "heads": 1},
    ),
    Mutant(
        "sees-the-next-key",
        "the causal limit is one too far",
        ((TEMPLATE, MASKED, MASKED.replace("row{{ r }}", "row{{ r }} + 1")),),
        CAUSAL,
        breaks=lambda _, row: row not in (15, 19),
    ),
    Mutant(
        "ends-with-the-first-row",
        "a block leaves out keys that only its later rows see",
        ((TEMPLATE, "visible_keys(last_row)", "visible_keys(block_row)"),),
        CAUSAL,
        breaks=lambda _, row: row % 16 > 1,
    ),
    Mutant(
        "begins-with-the-last-row",
        "a block leaves out keys that only its earlier rows see",
        ((TEMPLATE, "first_key(block_row)", "first_key(last_row)"),),
        {**CAUSAL, "window": 4},
        breaks=lambda _, row: row % 16 != 15 and row != 19,
    ),
    Mutant(
        "rows-in-a-line",
        "the second row of an invocation is taken for the one after its first",
        ((TEMPLATE, "{{ r * lanes }};", "{{ r }};"),),
        {"seq": 16, "head_dim": 8, "heads": 2},
        breaks=lambda _, row: row > 8,
        unwritten=True,
    ),
    Mutant(
        "last-row-unwritten",
        "the last row is never stored",
        ((TEMPLATE, "if (row{{ r }} < SEQ) {", "if (row{{ r }} < SEQ - 1) {"),),
        SQUARE,
        breaks=lambda _, row: row == 39,
        unwritten=True,
    ),
    Mutant(
        "ungrouped-heads",
        "query head 1 reads key/value head 1 of its own",
        ((TEMPLATE, "head / GROUP;", "head % 2u;"),),
        {**SQUARE, "heads": 4, "kv_heads": 2},
        breaks=lambda head, _: head in (1, 2),
    ),
    Mutant(
        "nothing-by-nothing",
        "a row without keys divides by its sum",
        ((TEMPLATE, "l{{ r }} == 0.0 ? 0.0 : 1.0 / l{{ r }};", "1.0 / l{{ r }};"),),
        {"seq": 8, "kv_seq": 4, "head_dim": 8, "heads": 2, "causal": True},
        inputs="n4_rows_without_keys",
        breaks=lambda _, row: row < 4,
    ),
    Mutant(
        "maximum-not-kept",
        "every key is weighed against its own step's maximum, and the sums against another",
        ((TEMPLATE, "        m{{ r }} = highest{{ r }};\n", ""),),
        {"seq": 5, "kv_seq": 4, "head_dim": 8, "heads": 2},
        inputs="n1_logit_151",
    ),
)

SHUFFLED = (
    Mutant(
        "word-of-another-invocation",
        "words are taken from the neighbour of the invocation that has read them",
        ((TEMPLATE, "{{ i % subgroup }}u)", "{{ (i + 1) % subgroup }}u)"),),
        {"seq": 9, "head_dim": 16, "heads": 1},
    ),
    Mutant(
        "first-words-again",
        "the words past the size of a subgroup are the first ones again",
        ((TEMPLATE, " + {{ n * subgroup }}u", ""),),
        {"seq": 9, "head_dim": 36, "heads": 1},
    ),
)
"""Of reads that a subgroup shares."""

OF = {"llvmpipe": MUTANTS, "lavapipe": SHUFFLED, "swiftshader": SHUFFLED}


@pytest.fixture(scope="module")
def lanes() -> LoadedKernel:
    return load_kernel(KERNELS / NAME)


def _case(mutant: Mutant, loaded: LoadedKernel, api: str) -> Case:
    axes = {**SMALL, "api": api, "subgroup": 4 if api == "vulkan" else 0, **mutant.axes}
    return make_case(loaded.kernel, mutant.workload, inputs=mutant.inputs, seed=seed_of(mutant), axes=axes)


def test_named_inputs_pass(any_bench: Bench, lanes: LoadedKernel) -> None:
    """Precisions change from shape to shape, and from driver to driver; inputs of one shape share a program.
    lavapipe, which compiles slowly, has a third of the shapes."""
    any_bench.repeats = 0
    api, n = any_bench.driver.api, DRIVERS.index(any_bench.name)
    cases = [
        named_case(
            lanes.kernel,
            inputs,
            api=api,
            precision="fp32" if inputs == "beyond_half" else PRECISIONS[(n + group) % 2],
            subgroup=SUBGROUP[any_bench.name],
            **SMALL,
        )
        for group, shape in enumerate(dict.fromkeys(str(s) for s in EVERY.values()))
        for inputs, workload in EVERY.items()
        if str(workload) == shape and (any_bench.name != "lavapipe" or group % 3 == 0)
    ]
    any_bench.passing(any_bench.possible(lanes, cases))


def test_shapes_pass(any_bench: Bench, lanes: LoadedKernel) -> None:
    """All on SwiftShader, which compiles soonest, and each on one of the others."""
    any_bench.repeats = 0
    n = DRIVERS.index(any_bench.name)
    cases = [
        make_case(
            lanes.kernel,
            workload,
            axes={"api": any_bench.driver.api, "precision": PRECISIONS[(n + at // 2) % 2], **axes},
        )
        for at, (workload, axes) in enumerate(SHAPES)
        if n == 2 or at % 2 == n
    ]
    any_bench.passing([(lanes, case) for case in cases])


def test_shuffled_and_plain_reads_agree_to_the_bit(vulkan_bench: Bench, lanes: LoadedKernel) -> None:
    """Whoever reads a word, it is the same word; so are sums."""
    workload: dict[str, AxisValue] = {"seq": 33, "kv_seq": 21, "head_dim": 36, "heads": 2, "causal": True}
    cases = [
        make_case(lanes.kernel, workload, axes={**SMALL, "api": "vulkan", "subgroup": size})
        for size in (0, SUBGROUP[vulkan_bench.name])
    ]
    plain, shuffled = vulkan_bench.passing([(lanes, case) for case in cases])
    assert plain.numerics.hash == shuffled.numerics.hash


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return mutant_outcomes(tmp_path_factory.mktemp("mutants"), OF, _case)


@pytest.mark.parametrize(
    ("name", "mutant"),
    [pytest.param(name, m, id=f"{name}-{m.name}") for name, mutants in OF.items() for m in mutants],
)
def test_mutant_is_killed_where_it_is_wrong(name: str, mutant: Mutant, outcomes: Outcomes) -> None:
    outcome = outcomes(name)[mutant.name]
    assert outcome.verdict == "mismatch", f"{mutant.fault}: {outcome.verdict} {outcome.end.log}"
    assert (outcome.numerics.unwritten > 0) == mutant.unwritten
    wrong = ~(np.abs(outcome.values - outcome.reference) <= outcome.allowed)
    broken = {(int(head), int(row)) for head, row, _ in np.argwhere(wrong)}
    heads, rows, _ = wrong.shape
    assert broken == {(h, r) for h in range(heads) for r in range(rows) if mutant.breaks(h, r)}


@pytest.mark.parametrize("name", DRIVERS)
def test_the_true_kernel_passes_the_cases_of_the_mutants(name: str, tmp_path: Path) -> None:
    once = {(str(m.workload), m.inputs): m for m in OF[name]}
    assert_true_kernels_pass(Bench(tmp_path, name), list(once.values()), _case)
