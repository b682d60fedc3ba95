"""From trials to arrays."""

from dataclasses import replace

import numpy as np

from orchestrator.analysis.speed.trials import samples_of
from orchestrator.domain.trial import Sensors
from tests.results_fixture import case, passing, timing


def test_trials_become_rows_with_the_clock_and_warmth_around_each_sample() -> None:
    timed = replace(timing(), wall_ns=[10, 20], gpu_timer="absent")
    sensors = Sensors(gpu_hz=[100, 200, 300], temp_mc=[30, 50, 40], throttled=True)
    one = replace(passing(case(), "phone"), timing=timed, sensors=replace(sensors, battery_mc=33_100))
    two = replace(one, timing=replace(timed, wall_ns=[30]), sensors=None)
    three = replace(one, timing=None)
    made = samples_of([one, two, three])
    np.testing.assert_array_equal(made.latency_ns, [[10, 20], [30, np.nan], [np.nan, np.nan]])
    np.testing.assert_array_equal(made.gpu_hz, [[150, 250], [np.nan] * 2, [np.nan] * 2])
    np.testing.assert_array_equal(made.temp_mc, [[50, 50], [np.nan] * 2, [np.nan] * 2])
    np.testing.assert_array_equal(made.throttled, [[True, True], [False] * 2, [False] * 2])
    np.testing.assert_array_equal(made.battery_mc, [33_100, np.nan, 33_100])


def test_one_reading_for_a_whole_trial_stands_for_all_its_samples() -> None:
    timed = replace(timing(), wall_ns=[10, 20, 30], gpu_timer="absent")
    made = samples_of([replace(passing(case(), "phone"), timing=timed, sensors=Sensors(temp_mc=[41_000]))])
    assert made.temp_mc[0].tolist() == [41_000] * 3
    assert samples_of([]).latency_ns.shape == (0, 1)
