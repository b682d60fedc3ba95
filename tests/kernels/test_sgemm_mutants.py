"""Every mutant of sgemm is a mismatch at an element it breaks; the true kernel passes the same cases."""

from pathlib import Path

import numpy as np
import pytest

from orchestrator.domain.case import Case
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.broken import Outcomes, assert_true_kernels_pass, mutant_outcomes, seed_of
from tests.kernels.drivers import DRIVERS
from tests.kernels.harness import Bench, make_case
from tests.kernels.mutants_sgemm import MUTANTS, SMALL, SUBGROUP_MUTANTS, GemmMutant

OF = {
    "llvmpipe": [m for n, m in enumerate(MUTANTS) if m.race or n % 8 == 0],
    "lavapipe": [*MUTANTS[4::8], *SUBGROUP_MUTANTS],
    "swiftshader": MUTANTS,
}
"""All on SwiftShader, which compiles soonest; races on llvmpipe, too, and a few of the others everywhere."""
CASES = [pytest.param(name, m, id=f"{name}-{m.name}") for name in DRIVERS for m in OF[name]]

MOST = 0.97
"""Of the elements that break: a few of random ones are right by chance."""


def _case(mutant: GemmMutant, loaded: LoadedKernel, api: str) -> Case:
    axes = {"api": api, **SMALL, **mutant.axes}
    return make_case(loaded.kernel, mutant.workload, inputs=mutant.inputs, seed=seed_of(mutant), axes=axes)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return mutant_outcomes(tmp_path_factory.mktemp("mutants"), OF, _case)


@pytest.mark.parametrize(("name", "mutant"), CASES)
def test_mutant_is_killed_where_it_is_wrong_and_nowhere_else(
    name: str, mutant: GemmMutant, outcomes: Outcomes
) -> None:
    """The elements are compared on the host, too, apart from the runner."""
    outcome = outcomes(name)[mutant.name]
    assert outcome.verdict == "mismatch", f"{mutant.fault}: {outcome.verdict} {outcome.end.log}"
    assert (outcome.numerics.unwritten > 0) == mutant.unwritten
    places = np.indices(outcome.reference.shape)
    expected = mutant.breaks(places[0], places[1], places[2])
    for element in (outcome.numerics.first_bad, outcome.numerics.worst):
        assert element is None or expected.ravel()[element.index], f"not broken by: {mutant.fault}"
    with np.errstate(invalid="ignore"):
        wrong = ~(np.abs(outcome.values - outcome.reference) <= outcome.allowed)
    assert not (wrong & ~expected).any()
    if not mutant.race:  # of a race the guard may be all that is left, or the execution that was judged first
        assert wrong[expected].mean() > MOST


@pytest.mark.parametrize("name", DRIVERS)
def test_true_kernel_passes_the_cases_of_the_mutants(name: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, name, repeats=0)
    assert_true_kernels_pass(bench, OF[name], _case)


def test_names_are_unique() -> None:
    assert len({m.name for m in (*MUTANTS, *SUBGROUP_MUTANTS)}) == len(MUTANTS) + len(SUBGROUP_MUTANTS) >= 24
