"""Every mutant is a mismatch at an element that it breaks; the true kernels pass the same cases."""

from pathlib import Path

import numpy as np
import pytest

from orchestrator.domain.case import Case
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.harness import Bench, Outcome, make_case
from tests.kernels.mutants import MUTANTS, Mutant


def _case(mutant: Mutant, loaded: LoadedKernel) -> Case:
    axes = {"tile": "8x8", **mutant.axes}
    return make_case(loaded.kernel, mutant.workload, inputs=mutant.inputs, axes=axes)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """All mutants in one job."""
    folder = tmp_path_factory.mktemp("mutants")
    kernels = {mutant.name: mutant.load(folder) for mutant in MUTANTS}
    cases = [(kernels[mutant.name], _case(mutant, kernels[mutant.name])) for mutant in MUTANTS]
    bench = Bench(folder / "bench", repeats=0)
    return dict(zip(kernels, bench.run(cases), strict=True))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_killed_where_it_is_wrong(mutant: Mutant, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[mutant.name]
    assert outcome.verdict == "mismatch", (
        f"{mutant.fault}: {outcome.verdict} {outcome.reason} {outcome.end.log}"
    )
    found = outcome.numerics
    assert (found.unwritten > 0) == mutant.unwritten
    for element in (found.first_bad, found.worst):
        assert element is not None
        head, row, _ = outcome.coordinates(element.index)
        assert mutant.breaks(head, row), f"head {head} row {row} is not broken by: {mutant.fault}"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_breaks_the_rows_it_should_and_no_others(mutant: Mutant, outcomes: dict[str, Outcome]) -> None:
    """Compared on the host, apart from the runner."""
    outcome = outcomes[mutant.name]
    assert outcome.tensor is not None
    allowed = outcome.tolerance.atol + outcome.tolerance.rtol * np.abs(outcome.reference)
    wrong = ~(np.abs(outcome.tensor - outcome.reference) <= allowed)
    broken = {(int(head), int(row)) for head, row, _ in np.argwhere(wrong)}
    heads, rows = range(wrong.shape[0]), range(wrong.shape[1])
    expected = {(head, row) for head in heads for row in rows if mutant.breaks(head, row)}
    assert broken
    assert broken <= expected if mutant.race else broken == expected


def test_true_kernels_pass_the_cases_of_the_mutants(tmp_path: Path, kernels: dict[str, LoadedKernel]) -> None:
    cases = [(kernels[m.kernel], _case(m, kernels[m.kernel])) for m in MUTANTS]
    wrong = [
        f"{mutant.name}: {outcome.verdict} {outcome.reason}"
        for mutant, outcome in zip(MUTANTS, Bench(tmp_path).run(cases), strict=True)
        if outcome.verdict != "pass"
    ]
    assert not wrong, "\n".join(wrong)


def test_there_are_enough_mutants_of_both_kernels() -> None:
    assert len({m.name for m in MUTANTS}) == len(MUTANTS) >= 16
    assert {m.kernel for m in MUTANTS} == {"attention_flash", "attention_naive"}
