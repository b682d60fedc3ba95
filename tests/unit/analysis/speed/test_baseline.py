"""Which nights a series is compared with."""

import numpy as np

from orchestrator.analysis.speed.baseline import baseline_nights, elsewhere, left_clock
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


def test_nights_at_another_clock_are_counted_where_they_leave_a_series_without_a_baseline() -> None:
    """Series: at another clock; summarised otherwise; half of its nights here; too few nights; no number."""
    history = past(np.zeros((5, 10)))
    history.clock_hz[0] = HZ * 0.8
    history.basis[1] = Basis.PERCENTILE_20
    history.clock_hz[2, :7] = HZ * 0.8
    history.clock_hz[3] = HZ * 0.8
    history.accepted[3, :5] = False
    history.clock_hz[4] = HZ * 0.8
    found = elsewhere(history, tonight(np.array([0, 0, 0, 0, np.nan])))
    assert found.nights.tolist() == [10, 10, 7, 0, 0]
    assert found.here[:3].tolist() == [0, 0, 3]
    np.testing.assert_allclose(found.clock_hz, [HZ * 0.8, np.nan, HZ * 0.8, np.nan, np.nan])


def test_phones_that_left_their_clock() -> None:
    """Three phones of one SoC, and one of another: most series tell, and one night of one phone is none."""
    device, soc = np.repeat(np.arange(4, dtype=np.int64), 3), np.array([0, 0, 0, 1], np.int64)
    now, still = tonight(np.zeros(12)), np.ones((4, 10), np.bool_)
    history = past(np.zeros((12, 10)))

    def left() -> list[int]:
        """Nights of each phone, tonight among them."""
        return left_clock(history, now, device, soc, still).sum(axis=1).tolist()

    assert left() == [0, 0, 0, 0]
    history.clock_hz[[0, 1, 3, 9, 10, 11]] = HZ * 1.2
    assert left() == [0, 0, 0, 0], (
        "a third of a phone's series tells nothing, one night of one phone too little"
    )
    history.clock_hz[4] = HZ * 1.2
    assert left() == [1, 1, 0, 0], "two phones of a SoC in one night"
    history.clock_hz[9:, 8:] = HZ
    assert left() == [1, 1, 0, 3], "one phone, three nights in a row"
    history.clock_hz[9:, 2] = HZ
    assert left() == [1, 1, 0, 0], "it had that clock before: a state of it"
    still[:2] = False
    assert left() == [0, 0, 0, 0], "nothing that they are compared with was at another clock"
