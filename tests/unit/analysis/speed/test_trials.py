"""From trials to arrays, and what a night says of itself in words."""

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.analysis.speed.night import Samples, summarise
from orchestrator.analysis.speed.trials import samples_of
from orchestrator.analysis.speed.words import sentence
from orchestrator.domain.trial import Sensors
from tests.results_fixture import case, passing, timing
from tests.unit.analysis.speed.made import samples


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


HZ = np.full((1, 20), 900e6)
SLOW = np.array([[900e6] * 10 + [600e6] * 10])


@pytest.mark.parametrize(
    ("taken", "words"),
    [
        (
            samples([10.0] * 20, hz=HZ),
            "20 of 20 samples in the clock state that stands for the night (900 MHz)",
        ),
        (samples([10.0] * 20), "no clock data: 20th percentile of 20 samples"),
        (
            samples([10.0] * 16 + [14.0] * 4),
            "no clock data: 20th percentile of 20 samples: 16 around 10 ms, 4 around 14 ms",
        ),
        (samples([10.0] * 9), "9 samples: at least 10 are needed"),
        (
            samples([10.0] * 20, temp_c=np.array([[86.0] * 16 + [70.0] * 4])),
            "4 good samples of 20: at least 5 are needed; 16 over the ceiling left out",
        ),
        (samples([10.0, 14.0] * 10), "two modes and neither prevails: 10 around 10 ms, 10 around 14 ms"),
        (samples([10.0] * 20, hz=SLOW), "no clock state holds more than half of 20 good samples"),
        (
            samples([10.0 + i for i in range(20)]),
            "times moved by more than 10% between the first and the last third of the trial",
        ),
    ],
    ids=lambda value: None if isinstance(value, Samples) else str(value)[:24],
)
def test_g4_05_a_night_says_what_stands_for_it_or_why_nothing_does(taken: Samples, words: str) -> None:
    """G4-05: what was excluded is counted and told."""
    assert sentence(summarise(taken), 0) == words
