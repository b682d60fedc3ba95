"""Order statistics of rows with absent numbers, against numpy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from orchestrator.analysis.speed import rows

MAYBE = st.floats(-1e6, 1e6) | st.just(float("nan"))
MATRIX = arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 9)), elements=MAYBE)


@given(MATRIX, st.floats(0, 1))
@pytest.mark.filterwarnings("ignore:All-NaN slice:RuntimeWarning")
def test_quantiles_are_numpys(values: rows.Floats, q: float) -> None:
    ranked, count = rows.ordered(values)
    got = rows.quantile(ranked, np.zeros_like(count), count, q)
    np.testing.assert_allclose(got, np.nanquantile(values, q, axis=1), rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(rows.median(values), np.nanmedian(values, axis=1), rtol=1e-9, atol=1e-6)


@given(MATRIX)
@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:Degrees of freedom:RuntimeWarning")
def test_means_and_variances_are_numpys(values: rows.Floats) -> None:
    mean, variance, count = rows.mean_and_variance(values)
    np.testing.assert_allclose(mean, np.nanmean(values, axis=1), rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(variance, np.nanvar(values, axis=1, ddof=1), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(count, (~np.isnan(values)).sum(axis=1))


@given(st.lists(st.tuples(st.integers(0, 4), MAYBE), max_size=40))
def test_group_medians_are_medians_of_groups(pairs: list[tuple[int, float]]) -> None:
    group = np.array([g for g, _ in pairs], np.int64)
    values = np.array([v for _, v in pairs], np.float64)
    got, count = rows.group_medians(values, group, 6)
    for g in range(6):
        mine = values[(group == g) & ~np.isnan(values)]
        assert count[g] == len(mine)
        assert got[g] == pytest.approx(np.median(mine)) if len(mine) else np.isnan(got[g])


def test_rows_without_columns_have_no_median() -> None:
    assert np.isnan(rows.median(np.zeros((3, 0)))).all()
