"""The signed-rank test and its limits, against SciPy and against each other."""

import numpy as np
import pytest
from scipy.stats import wilcoxon

from orchestrator.analysis.speed.signed_rank import estimate_and_limits, p_values


@pytest.mark.parametrize("n", [1, 5, 13, 40, 60])
def test_p_is_scipys_row_by_row(n: int) -> None:
    rows = np.random.default_rng(n).normal(0.3, 1, (6, n))
    expected = [wilcoxon(r, method="exact").pvalue for r in rows]
    np.testing.assert_allclose(p_values(rows), expected)


def test_ties_and_zeros_have_a_p() -> None:
    rows = np.array([[0.0] * 12, [1.0] * 12, [0.0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]])
    p = p_values(rows)
    assert p[0] == 1
    assert (p[1:] < 0.01).all()
    assert p_values(np.zeros((2, 0))).tolist() == [1, 1]


@pytest.mark.parametrize("n", [8, 13, 25])
@pytest.mark.parametrize("alpha", [0.02, 0.005])
def test_limits_are_where_the_test_no_longer_rejects(n: int, alpha: float) -> None:
    """A shift just inside of the limits is not rejected one-sided at alpha, one just outside is."""
    rows = np.random.default_rng(n).normal(0.3, 1, (4, n))
    middle, low, high = estimate_and_limits(rows, alpha)
    for row, m, lower, upper in zip(rows, middle, low, high, strict=True):
        assert lower < m < upper
        # The upper limit is the lower one of the mirror image.
        for sample, limit in ((row, lower), (-row, -upper)):
            inside = wilcoxon(sample - limit - 1e-9, alternative="greater", method="exact").pvalue
            outside = wilcoxon(sample - limit + 1e-9, alternative="greater", method="exact").pvalue
            assert outside <= alpha < inside


def test_few_pairs_have_no_limits() -> None:
    middle, low, high = estimate_and_limits(np.array([[1.0, 2.0, 3.0]]), 0.02)
    assert (middle[0], low[0], high[0]) == (2.0, -np.inf, np.inf)
    assert np.isnan(estimate_and_limits(np.zeros((1, 0)), 0.02)[0][0])


def test_limits_err_as_often_as_they_say() -> None:
    rows = np.random.default_rng(1).normal(0, 1, (4_000, 12))
    _, low, high = estimate_and_limits(rows, 0.05)
    assert 0.03 < np.mean(low > 0) < 0.06
    assert 0.03 < np.mean(high < 0) < 0.06
