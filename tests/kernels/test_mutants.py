"""Every mutant is a mismatch at an element that it breaks; the true kernels pass the same cases."""

from pathlib import Path

import numpy as np
import pytest

from orchestrator.domain.case import Case
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.attention_mutant import Mutant
from tests.kernels.broken import Outcomes, assert_true_kernels_pass, mutant_outcomes, seed_of
from tests.kernels.drivers import DRIVERS
from tests.kernels.harness import Bench, make_case
from tests.kernels.mutants import FP16_MUTANTS, MUTANTS
from tests.kernels.mutants_masks import MASK_MUTANTS

ALL = (*MUTANTS, *MASK_MUTANTS)
OF = {
    "llvmpipe": [m for n, m in enumerate(ALL) if m.race or n % 8 == 0],
    "lavapipe": [*ALL[4::16], *FP16_MUTANTS],
    "swiftshader": [*ALL],
}
"""All on SwiftShader, which compiles soonest; races on llvmpipe, too, and a few of the others everywhere."""
CASES = [pytest.param(name, m, id=f"{name}-{m.name}") for name in DRIVERS for m in OF[name]]


def _case(mutant: Mutant, loaded: LoadedKernel, api: str) -> Case:
    axes = {"tile": "8x8", "api": api, **mutant.axes}
    return make_case(loaded.kernel, mutant.workload, inputs=mutant.inputs, seed=seed_of(mutant), axes=axes)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return mutant_outcomes(tmp_path_factory.mktemp("mutants"), OF, _case)


@pytest.mark.parametrize(("name", "mutant"), CASES)
def test_mutant_is_killed_where_it_is_wrong(name: str, mutant: Mutant, outcomes: Outcomes) -> None:
    outcome = outcomes(name)[mutant.name]
    assert outcome.verdict == "mismatch", (
        f"{mutant.fault}: {outcome.verdict} {outcome.reason} {outcome.end.log}"
    )
    found = outcome.numerics
    assert (found.unwritten > 0) == mutant.unwritten
    for element in (found.first_bad, found.worst):
        assert element is not None
        if mutant.race and name != "llvmpipe":
            continue
        head, row, _ = outcome.coordinates(element.index)
        assert mutant.breaks(head, row), f"head {head} row {row} is not broken by: {mutant.fault}"


@pytest.mark.parametrize(("name", "mutant"), CASES)
def test_mutant_breaks_the_rows_it_should_and_no_others(
    name: str, mutant: Mutant, outcomes: Outcomes
) -> None:
    """Compared on the host, apart from the runner."""
    outcome = outcomes(name)[mutant.name]
    wrong = ~(np.abs(outcome.values - outcome.reference) <= outcome.allowed)
    broken = {(int(head), int(row)) for head, row, _ in np.argwhere(wrong)}
    heads, rows = range(wrong.shape[0]), range(wrong.shape[1])
    expected = {(head, row) for head in heads for row in rows if mutant.breaks(head, row)}
    assert broken
    if mutant.race and name != "llvmpipe":
        return
    assert broken <= expected if mutant.race else broken == expected


@pytest.mark.parametrize("name", DRIVERS)
def test_true_kernels_pass_the_cases_of_the_mutants(name: str, tmp_path: Path) -> None:
    assert_true_kernels_pass(Bench(tmp_path, name), OF[name], _case)


def test_there_are_enough_mutants_of_both_kernels() -> None:
    assert len({m.name for m in ALL}) == len(ALL) >= 50
    assert {m.kernel for m in MUTANTS} == {"attention_flash", "attention_naive"}
    assert {m.kernel for m in FP16_MUTANTS} == {"attention_flash", "attention_naive"}
