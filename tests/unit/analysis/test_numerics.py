import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analysis.numerics import coordinates, element_error, tolerance_use, worst_error, worst_use
from orchestrator.domain.kernel import Tolerance
from orchestrator.domain.trial import Element
from tests.results_fixture import numerics

BOTH = Tolerance(atol=1e-6, rtol=1e-5, nmse=1e-10)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.data())
def test_coordinates_are_numpys(shape: list[int], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, math.prod(shape) - 1))
    assert coordinates(index, shape) == tuple(int(i) for i in np.unravel_index(index, shape))


@pytest.mark.parametrize(("index", "shape"), [(6, [2, 3]), (-1, [2, 3]), (0, [])])
def test_impossible_coordinates_are_none(index: int, shape: list[int]) -> None:
    assert coordinates(index, shape) is None


def test_element_error_against_its_own_allowance() -> None:
    found = element_error(Element(index=5, got=2.5, ref=2.0), [2, 3], Tolerance(0.1, 0.05, 1.0))
    assert found.coordinates == (1, 2)
    assert found.error == 0.5
    assert found.allowed == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("got", "ref", "error"),
    [
        (math.nan, 1.0, math.inf),
        (1.0, math.nan, math.inf),
        (math.inf, 1.0, math.inf),
        (math.inf, -math.inf, math.inf),
        (math.inf, math.inf, 0.0),
        (math.nan, math.nan, 0.0),
    ],
)
def test_g4_01_error_of_non_finite_elements(got: float, ref: float, error: float) -> None:
    assert element_error(Element(0, got, ref), [], BOTH).error == error


def test_share_is_exact_with_one_term() -> None:
    absolute = tolerance_use(numerics(8, max_abs=5e-7), Tolerance(2e-6, 0.0, 1.0))
    assert (absolute.share, absolute.exact, absolute.by) == (pytest.approx(0.25), True, "element")
    relative = tolerance_use(replace(numerics(8), max_rel=3e-5), Tolerance(0.0, 1e-4, 1.0))
    assert (relative.share, relative.exact) == (pytest.approx(0.3), True)


def test_share_with_two_terms_is_a_lower_bound_until_an_element_is_known() -> None:
    output = replace(numerics(8, max_abs=5e-6), ref_absmax=0.4)
    bound = tolerance_use(output, BOTH)
    assert (bound.share, bound.exact) == (pytest.approx(5e-6 / (1e-6 + 1e-5 * 0.4)), False)
    known = tolerance_use(replace(output, worst=Element(3, 1.1, 1.0)), Tolerance(0.04, 0.01, 1.0))
    assert (known.share, known.exact) == (pytest.approx(2.0), True)


def test_nmse_rules_where_it_is_used_up_more() -> None:
    use = tolerance_use(replace(numerics(8, max_abs=1e-9), nmse=5e-11), BOTH)
    assert (use.share, use.by) == (pytest.approx(0.5), "nmse")


@pytest.mark.parametrize("changes", [{"max_abs": math.nan}, {"nmse": math.nan}, {"nonfinite_mismatch": 1}])
def test_g4_01_nan_never_looks_small(changes: dict[str, float]) -> None:
    assert tolerance_use(replace(numerics(8, max_abs=0.0), **changes), BOTH).share == math.inf


def test_g4_01_rejected_elements_without_a_size_never_look_small() -> None:
    nan = Element(0, math.nan, math.nan)
    use = tolerance_use(replace(numerics(8, max_abs=1e-9), failing=2, worst=nan), BOTH)
    assert use.share == math.inf


def test_exact_result_under_zero_tolerance_uses_nothing() -> None:
    zero = Tolerance(0.0, 0.0, 0.0)
    assert tolerance_use(replace(numerics(8, max_abs=0.0), max_rel=0.0, nmse=0.0), zero).share == 0.0
    assert tolerance_use(replace(numerics(8, max_abs=1e-30), nmse=0.0), zero).share == math.inf


def test_g4_01_worst_error_keeps_nan_wherever_it_stands() -> None:
    good, bad = numerics(8, max_abs=1.0), numerics(8, max_abs=math.nan)
    assert worst_error([good, numerics(8, max_abs=2.0)]) == 2.0
    assert all(math.isnan(worst_error(pair) or 0.0) for pair in ([good, bad], [bad, good]))
    assert worst_error([]) is None


def test_worst_use_over_outputs_that_have_a_tolerance() -> None:
    outputs = [numerics(8, max_abs=1e-6, buffer="o"), numerics(8, max_abs=1e-6, buffer="lse")]
    use = worst_use(outputs, {"o": Tolerance(1e-5, 0.0, 1.0), "lse": Tolerance(2e-6, 0.0, 1.0)})
    assert use is not None
    assert use.share == pytest.approx(0.5)
    assert worst_use(outputs, {}) is None
