"""Shrunken variances and the t statistic, against known priors and SciPy."""

import numpy as np
import pytest
from scipy import special, stats

from orchestrator.analysis.speed.moderated import deltas, fit_prior, trigamma_inverse, two_sided


def test_trigamma_inverse_inverts() -> None:
    y = np.geomspace(1e-6, 1e7, 60)
    np.testing.assert_allclose(trigamma_inverse(special.polygamma(1, y)), y, rtol=1e-6)


@pytest.mark.parametrize(("d0", "s0"), [(4.0, 0.01), (20.0, 0.002)])
def test_the_prior_of_made_up_variances_is_found(d0: float, s0: float) -> None:
    rng = np.random.default_rng(3)
    n, df = 40_000, 13
    true = d0 * s0**2 / rng.chisquare(d0, n)
    seen = true * rng.chisquare(df, n) / df
    prior = fit_prior(seen, np.full(n, float(df)), np.zeros(n, np.int64), 1)
    assert prior.d0[0] == pytest.approx(d0, rel=0.1)
    assert prior.s0_sq[0] == pytest.approx(s0**2, rel=0.03)


def test_equal_variances_are_pooled_entirely() -> None:
    """More alike than chance makes them: the phone's variance serves all."""
    prior = fit_prior(np.full(50, 2e-4), np.full(50, 13.0), np.zeros(50, np.int64), 1)
    assert np.isinf(prior.d0[0])


def test_a_phone_with_few_series_takes_the_nights_prior() -> None:
    rng = np.random.default_rng(3)
    variance = np.concatenate([rng.chisquare(13, 500), [1e6, 1e6]]) * 1e-5
    group = np.repeat([0, 1], [500, 2])
    prior = fit_prior(variance, np.full(502, 13.0), group, 2)
    every = fit_prior(variance, np.full(502, 13.0), np.zeros(502, np.int64), 1)
    assert prior.s0_sq[1] == every.s0_sq[0]
    assert prior.d0[1] == every.d0[0] < prior.d0[0]


def test_a_zero_variance_is_a_quantised_timer_not_certainty() -> None:
    rng = np.random.default_rng(3)
    nights = np.round(rng.normal(0, 0.01, (100, 14)), 3)
    nights[0] = 0.0
    found = deltas(nights, np.full(100, 0.002), np.zeros(100, np.int64), 1)
    assert found.se[0] > 0
    assert np.isfinite(found.p).all()


def test_nothing_moves_where_nothing_ever_varied() -> None:
    """Tests with a made-up clock have no noise at all."""
    found = deltas(np.zeros((30, 14)), np.zeros(30), np.zeros(30, np.int64), 1)
    assert (found.p > 0.9).all()


def test_p_of_unchanged_series_is_uniform() -> None:
    rng = np.random.default_rng(8)
    sd = np.sqrt(1e-4 * 8 / rng.chisquare(8, 20_000))
    values = rng.normal(0, 1, (20_000, 15)) * sd[:, None]
    found = deltas(values[:, :-1], values[:, -1], np.zeros(20_000, np.int64), 1)
    assert stats.kstest(found.p, "uniform").pvalue > 0.001
    assert 0.5 < np.mean(found.p < 0.001) / 0.001 < 1.6


def test_shrinking_finds_more_than_a_plain_t_at_seven_nights() -> None:
    rng = np.random.default_rng(8)
    values = rng.normal(0, 0.01, (5_000, 8))
    values[:, -1] += 0.04
    past = values[:, :-1]
    found = deltas(past, values[:, -1], np.zeros(5_000, np.int64), 1)
    plain = (values[:, -1] - past.mean(axis=1)) / (past.std(axis=1, ddof=1) * np.sqrt(1 + 1 / 7))
    limit = float(stats.t.isf(5e-4 / 2, 6))
    assert np.mean(found.p < 5e-4) > 2 * np.mean(np.abs(plain) > limit)


@pytest.mark.parametrize(("nights", "known"), [(6, False), (7, True)], ids=str)
def test_seven_nights_are_a_baseline(nights: int, known: bool) -> None:
    values = np.random.default_rng(1).normal(0, 0.01, (30, 14))
    values[0, nights:] = np.nan
    found = deltas(values, np.zeros(30), np.zeros(30, np.int64), 1)
    assert np.isfinite(found.delta[0]) == known
    assert found.nights[0] == nights


def test_two_sided_p_is_scipys() -> None:
    t = np.array([0.0, 1.5, -3.0, 12.0])
    np.testing.assert_allclose(two_sided(t, np.full(4, 9.5)), 2 * stats.t.sf(np.abs(t), 9.5))
    np.testing.assert_allclose(two_sided(t, np.full(4, np.inf)), 2 * stats.norm.sf(np.abs(t)))
