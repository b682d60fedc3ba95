"""Phones as a whole: what the common shift hides from every series is found here."""

import numpy as np

from orchestrator.analysis.speed.rows import Bools, Floats, Ints
from orchestrator.analysis.speed.whole import PER_PHONE, judge_whole, phone_shifts

NIGHT_SD = 0.015
SOC: Ints = np.array([0, 0, 0, 1, 1, 2, 2], np.int64)


def nights(seed: int, count: int = 15) -> Floats:
    return np.random.default_rng(seed).normal(0, NIGHT_SD, (len(SOC), count))


def accepted(shift: Floats) -> Bools:
    return np.ones(shift.shape, np.bool_)


def test_nights_without_change_raise_no_more_alarms_than_allowed() -> None:
    alarms = 0
    for seed in range(300):
        found = judge_whole(nights(seed), accepted(nights(seed)), SOC, 3)
        alarms += bool(found.device.any() or found.soc.any())
    assert alarms <= 10  # 3 are expected; more than 10 of 300 happens once in 3,000 times


def test_one_worn_phone_is_that_phone_and_not_its_soc() -> None:
    shift = nights(1)
    shift[3, -1] = 0.12
    found = judge_whole(shift, accepted(shift), SOC, 3)
    assert np.flatnonzero(found.device).tolist() == [3]
    assert not found.soc.any()


def test_a_soc_that_is_slower_stays_found_while_its_nights_are_not_accepted() -> None:
    shift = nights(2, 24)
    shift[SOC == 0, -10:] += 0.04
    kept = accepted(shift)
    kept[SOC == 0, -10:-1] = False
    found = judge_whole(shift, kept, SOC, 3)
    assert found.soc.tolist() == [True, False, False]
    assert 0.03 < found.soc_delta[0] < 0.05
    shift[SOC == 0, -1] -= 0.04
    assert not judge_whole(shift, kept, SOC, 3).soc.any(), "it is back where it was"


def test_the_shift_of_a_phone_is_that_of_most_of_its_variants() -> None:
    random = np.random.default_rng(3)
    series, count = 2 * PER_PHONE, 12
    weather = random.normal(0, NIGHT_SD, count)
    log_ns = 14 + random.normal(0, 1, (series, 1)) + weather + random.normal(0, 0.01, (series, count))
    log_ns[::5, -1] += 0.3
    found = phone_shifts(log_ns, np.ones(log_ns.shape, np.bool_), np.zeros(series, np.int64), 1)
    assert np.abs(np.diff(found[0] - weather)).max() < 0.006
