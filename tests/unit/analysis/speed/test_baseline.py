"""Which nights a series is compared with."""

import numpy as np

from orchestrator.analysis.speed.baseline import baseline_nights
from orchestrator.analysis.speed.night import Basis
from tests.unit.analysis.speed.made import HZ, past, tonight


def test_the_last_fourteen_accepted_nights() -> None:
    history = past(np.zeros((1, 20)))
    history.accepted[0, 10] = False
    history.log_ns[0, 15] = np.nan
    taken = baseline_nights(history, tonight(np.zeros(1)))
    assert np.flatnonzero(taken[0]).tolist() == [4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 16, 17, 18, 19]


def test_a_new_epoch_starts_a_new_baseline() -> None:
    history = past(np.zeros((1, 10)))
    history.epoch[0, 6:] = 1
    assert np.flatnonzero(baseline_nights(history, tonight(np.zeros(1), np.array([1])))[0]).tolist() == [
        6,
        7,
        8,
        9,
    ]


def test_another_clock_or_another_summary_is_not_compared() -> None:
    history = past(np.zeros((1, 10)))
    history.clock_hz[0, :3] = HZ * 0.8
    history.clock_hz[0, 3] = np.nan
    history.basis[0, 4] = Basis.PERCENTILE_20
    assert np.flatnonzero(baseline_nights(history, tonight(np.zeros(1)))[0]).tolist() == [3, 5, 6, 7, 8, 9]


def test_a_series_without_a_number_tonight_keeps_its_baseline() -> None:
    """It is missing or inconclusive, not new."""
    assert baseline_nights(past(np.zeros((1, 10))), tonight(np.array([np.nan]))).sum() == 10
