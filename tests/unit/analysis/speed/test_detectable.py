"""What "same" is worth: the change that would have been found."""

import numpy as np
import pytest

from orchestrator.analysis.speed.detectable import detectable, limit_p
from orchestrator.analysis.speed.discovery import q_values
from orchestrator.analysis.speed.moderated import two_sided


@pytest.mark.parametrize(("df", "se"), [(13.0, 0.01), (60.0, 0.004), (np.inf, 0.007)])
def test_a_change_of_that_size_is_found_in_four_of_five_nights(df: float, se: float) -> None:
    n, p, threshold = 40_000, 1e-3, 0.02
    size = detectable(np.array([se]), np.array([df]), p, np.array([threshold]))[0]
    rng = np.random.default_rng(4)
    spread = np.ones(n) if np.isinf(df) else np.sqrt(rng.chisquare(df, n) / df)
    estimate = size + rng.normal(0, se, n)
    found = (two_sided(estimate / (se * spread), np.full(n, df)) <= p) & (estimate > threshold)
    assert found.mean() == pytest.approx(0.8, abs=0.03)


def test_it_is_never_below_the_threshold() -> None:
    size = detectable(np.array([1e-6]), np.array([13.0]), 1e-4, np.array([0.02]))
    assert size[0] == pytest.approx(0.02, abs=1e-4)


def test_a_series_without_an_error_has_no_detectable_change() -> None:
    assert np.isnan(detectable(np.array([np.nan]), np.array([np.nan]), 1e-4, np.array([0.02]))[0])


def test_the_limit_is_what_the_false_discovery_rate_let_pass() -> None:
    quiet = np.array([0.5] * 99 + [np.nan])
    assert limit_p(quiet, q_values(quiet)) == pytest.approx(0.05 / 99)
    busy = np.array([1e-6] * 10 + [0.5] * 90)
    assert limit_p(busy, q_values(busy)) == pytest.approx(0.05 * 10 / 100)
