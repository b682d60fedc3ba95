"""Two clock states within one trial: found, named, and never mistaken for noise."""

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.analysis.clocks import ClockState, clock_facts, clock_moved, split, steady
from orchestrator.domain.trial import Sensors, Timing
from tests.results_fixture import case, passing, timing

MS = 1_000_000


def timed(*ms: float) -> Timing:
    return replace(timing(), wall_ns=[round(m * MS) for m in ms])


def test_g4_05_alternating_clocks_are_two_states() -> None:
    """G4-05: 10.0 and 14.0 ms in turn are two clocks, and no 12 ms."""
    facts = clock_facts(timed(*[10.0, 14.0] * 10), None)
    assert facts.states == (ClockState(10, 14.0 * MS, None), ClockState(10, 10.0 * MS, None))
    assert facts.clock_moved


def test_g4_05_states_are_named_by_the_clock_where_the_device_shows_it() -> None:
    """G4-05: 4 samples at 1155 MHz took 21.2 ms, 16 at 1980 MHz 11.9 ms."""
    hz = [1_155_000_000] * 4 + [1_980_000_000] * 17
    facts = clock_facts(timed(*[21.2] * 4, *[11.9] * 16), Sensors(gpu_hz=hz))
    slow, fast = facts.states
    assert (slow.samples, slow.mean_ns, slow.hz) == (4, 21.2 * MS, 1_155_000_000)
    assert (fast.samples, fast.hz) == (16, 1_980_000_000)
    assert (facts.low_hz, facts.high_hz) == (1_155_000_000, 1_980_000_000)


@pytest.mark.parametrize(
    "ms",
    [
        [10 + i * 0.5 for i in range(20)],
        [10.0] * 19 + [50.0],
        [10.0, 10.1, 10.2, 10.0, 50.0],
        [10.0] * 10 + [11.0] * 10,
        [10.0],
        [],
        [10.0] * 20,
    ],
    ids=["ramp", "outlier", "outlier of five", "ten percent", "one", "none", "equal"],
)
def test_g4_05_ramps_outliers_and_small_steps_are_no_states(ms: list[float]) -> None:
    """G4-05: what is no pair of clocks is not called one."""
    assert clock_facts(timed(*ms), None).states == ()


def test_g4_05_an_outlier_hides_no_states() -> None:
    """G4-05: two clocks stay two beside one disturbed sample."""
    modes = split([round(m * MS) for m in [*[10.0, 14.0] * 10, 90.0]])
    assert modes is not None
    assert [len(m) for m in modes] == [10, 11]


@pytest.mark.parametrize("n", [5, 10, 20, 60])
def test_noise_around_one_clock_is_one_state(n: int) -> None:
    noise = np.random.default_rng(n).normal(10.0, 0.3, (500, n))
    found = sum(split([round(float(ms) * MS) for ms in samples]) is not None for samples in noise)
    assert found == 0


def test_a_shown_clock_that_moves_is_told_even_where_times_do_not() -> None:
    facts = clock_facts(timed(*[10.0] * 4), Sensors(gpu_hz=[300, 300, 400, 400, 400]))
    assert facts.states == ()
    assert facts.clock_moved
    assert not clock_facts(timed(*[10.0] * 4), Sensors(gpu_hz=[396, 400, 400, 400, 400])).clock_moved
    assert not clock_facts(timed(*[10.0] * 4), Sensors(gpu_hz=[])).clock_moved


def test_samples_of_a_throttled_trial_are_counted() -> None:
    assert clock_facts(timed(*[10.0] * 7), Sensors(throttled=True)).throttled_samples == 7
    assert clock_facts(timed(*[10.0] * 7), Sensors(throttled=False)).throttled_samples == 0
    assert clock_facts(timed(*[10.0] * 7), Sensors()).throttled_samples == 0


def test_no_fastest_one_is_sought_among_those_whose_clock_moved() -> None:
    moved = passing(case(tile="8x8"), "local-1", timed(*[1.0, 2.0] * 5))
    still = passing(case(tile="16x8"), "local-1", timed(*[3.0] * 10))
    assert clock_moved(moved)
    assert steady([moved, still], lambda t: t) == [still]
    assert steady([moved], lambda t: t) == [moved]
