"""Every mutant of blur_tonemap and scale is a mismatch at an element it breaks; the true kernels pass."""

from pathlib import Path

import numpy as np
import pytest

from orchestrator.domain.case import Case
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.broken import Outcomes, assert_true_kernels_pass, mutant_outcomes, seed_of
from tests.kernels.drivers import DRIVERS
from tests.kernels.harness import Bench, Outcome, make_case
from tests.kernels.mutants_image import (
    BLUR_MUTANTS,
    NATIVE_MUTANTS,
    ImageMutant,
    Place,
)
from tests.kernels.mutants_scale import SCALE_MUTANTS, SLANG_MUTANTS

MUTANTS = (*BLUR_MUTANTS, *SCALE_MUTANTS)


def _some(first: int) -> list[ImageMutant]:
    """The races, and a quarter of those that are wrong whatever the driver."""
    return [m for n, m in enumerate(MUTANTS) if m.race or n % 4 == first]


OF = {
    "llvmpipe": _some(0),
    "lavapipe": [*_some(2), *NATIVE_MUTANTS],
    "swiftshader": [*MUTANTS, *SLANG_MUTANTS],
}
"""All on SwiftShader, which compiles soonest."""
CASES = [pytest.param(name, m, id=f"{name}-{m.name}") for name in DRIVERS for m in OF[name]]


def _case(mutant: ImageMutant, loaded: LoadedKernel, api: str) -> Case:
    return make_case(
        loaded.kernel,
        mutant.workload,
        inputs=mutant.inputs,
        seed=seed_of(mutant),
        axes={"api": api, **mutant.axes},
    )


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return mutant_outcomes(tmp_path_factory.mktemp("mutants"), OF, _case)


def _places(outcome: Outcome) -> tuple[Place, Place, Place]:
    """Row, column and channel of every element; of a number its index, three times."""
    found = np.indices(outcome.reference.shape)
    return found[0], found[-2 % len(found)], found[-1]


@pytest.mark.parametrize(("name", "mutant"), CASES)
def test_mutant_is_killed_where_it_is_wrong(name: str, mutant: ImageMutant, outcomes: Outcomes) -> None:
    outcome = outcomes(name)[mutant.name]
    assert outcome.verdict == "mismatch", (
        f"{mutant.fault}: {outcome.verdict} {outcome.reason} {outcome.end.log}"
    )
    found = outcome.numerics
    assert (found.unwritten > 0) == mutant.unwritten
    breaks = mutant.breaks(*_places(outcome)).ravel()
    for element in (found.first_bad, found.worst):
        assert element is not None
        assert breaks[element.index], f"element {element.index} is not broken by: {mutant.fault}"


@pytest.mark.parametrize(("name", "mutant"), CASES)
def test_mutant_breaks_the_elements_it_should_and_no_others(
    name: str, mutant: ImageMutant, outcomes: Outcomes
) -> None:
    """Compared on the host, apart from the runner."""
    outcome = outcomes(name)[mutant.name]
    found, reference = outcome.values, outcome.reference
    with np.errstate(invalid="ignore"):
        near = np.abs(found - reference) <= outcome.allowed
    wrong = ~np.where(np.isnan(reference), ~np.isfinite(found), near)
    expected = mutant.breaks(*_places(outcome))
    assert not (wrong & ~expected).any()
    assert wrong[expected].mean() > (0.0 if mutant.race else mutant.most)


@pytest.mark.parametrize("name", DRIVERS)
def test_true_kernels_pass_the_cases_of_the_mutants(name: str, tmp_path: Path) -> None:
    assert_true_kernels_pass(Bench(tmp_path, name), OF[name], _case)


def test_there_are_enough_mutants_of_each_kernel() -> None:
    assert len({m.name for m in MUTANTS}) == len(MUTANTS) >= 24
    kernels = {m.kernel for m in MUTANTS}
    assert kernels == {"blur_tonemap_fused", "blur_tonemap_two_pass", "scale"}
