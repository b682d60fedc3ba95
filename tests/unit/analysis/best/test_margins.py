"""Margins against one variant: estimate, interval, worst phone."""

import numpy as np
import pytest

from orchestrator.analysis.best.levels import levels
from orchestrator.analysis.best.margins import margins
from orchestrator.analysis.best.shares import shares

NAN = float("nan")


def test_a_margin_is_that_of_the_phone_in_the_middle_and_the_worst_is_told() -> None:
    log_ns = np.zeros((2, 3, 4))
    log_ns[1] = np.array([0.05, 0.04, -0.02])[:, None]
    found = margins(log_ns, np.isfinite(log_ns), 0)
    assert found.estimate[1] == pytest.approx(0.04)
    assert found.worst[1] == pytest.approx(-0.02)
    assert found.pairs.tolist() == [12, 12]
    assert (found.estimate[0], found.low[0], found.high[0]) == (0.0, 0.0, 0.0)


def test_nights_of_one_phone_alone_cancel_what_moves_both() -> None:
    random = np.random.default_rng(1)
    night = random.normal(0, 0.2, (2, 10))
    log_ns = np.stack([night, night + 0.03])
    found = margins(log_ns, np.isfinite(log_ns), 0)
    assert found.low[1] == pytest.approx(0.03)
    assert found.high[1] == pytest.approx(0.03)


def test_without_a_second_night_nothing_is_known_of_the_scatter() -> None:
    log_ns = np.array([[[0.0]], [[0.5]]])
    found = margins(log_ns, np.isfinite(log_ns), 0)
    assert found.estimate[1] == 0.5
    assert np.isnan(found.low[1])
    assert not found.holds_zero[1]


def test_variants_that_never_met_have_no_margin() -> None:
    log_ns = np.array([[[0.0, NAN]], [[NAN, 0.5]]])
    found = margins(log_ns, np.isfinite(log_ns), 0)
    assert np.isnan(found.estimate[1])
    assert found.pairs[1] == 0


@pytest.mark.parametrize("phones", [1, 2, 3, 4])
def test_the_interval_holds_the_truth_in_95_of_100(phones: int) -> None:
    """Of 2,000 pairs of variants with 8 nights; the bounds are four standard errors wide at least."""
    random = np.random.default_rng(phones)
    differs = random.normal(0, 0.03, phones)
    differs -= np.median(differs)  # the middle phone's margin is exactly 0.01
    inside = 0
    for _ in range(2000):
        log_ns = random.normal(0, 0.02, (2, phones, 8))
        log_ns[1] += (0.01 + differs)[:, None]
        found = margins(log_ns, np.isfinite(log_ns), 0)
        inside += bool(found.low[1] <= 0.01 <= found.high[1])
    assert 0.93 <= inside / 2000 <= 0.995


def test_shares_count_nights_of_phones() -> None:
    log_ns = np.zeros((2, 2, 4))
    log_ns[1, 0] = [0.1, 0.1, -0.01, 0.1]
    log_ns[1, 1] = [-0.1, -0.1, -0.1, NAN]
    found = shares(log_ns, levels(log_ns), 0, [0, 1])
    assert found.nights.tolist() == [4, 4]
    assert found.won.tolist() == [3, 1]
    assert found.near.tolist() == [4, 1]
    assert found.loss == pytest.approx([0.0, 0.1])
