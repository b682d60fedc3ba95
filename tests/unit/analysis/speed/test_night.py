"""One number for a night, or the reason why there is none."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analysis.clocks import split
from orchestrator.analysis.speed.modes import modes_of
from orchestrator.analysis.speed.night import Basis, Nights, Reason, Samples, summarise
from tests.unit.analysis.speed.made import MS, samples

FAST, SLOW = 1980e6, 1155e6


def reason(night: Nights) -> Reason:
    return Reason(int(night.reason[0]))


def ms(night: Nights) -> float:
    return float(np.exp(night.log_ns[0]) / MS)


def test_g4_05_alternating_clocks_are_two_modes_and_no_number() -> None:
    """G4-05: 10.0 and 14.0 ms in turn; without clock data no state is known to prevail."""
    night = summarise(samples([10.0, 14.0] * 10))
    assert reason(night) is Reason.TWO_MODES
    assert np.isnan(night.log_ns[0])
    assert (night.modes.fast_n[0], night.modes.slow_n[0]) == (10, 10)
    assert np.exp(night.modes.fast[0]) == pytest.approx(10.0 * MS)
    assert np.exp(night.modes.slow[0]) == pytest.approx(14.0 * MS)


def test_g4_05_alternating_clocks_that_are_shown_have_no_dominant_state_either() -> None:
    """G4-05: half and half is no number, whatever the clock is called."""
    night = summarise(samples([10.0, 14.0] * 10, hz=np.array([[FAST, SLOW] * 10])))
    assert reason(night) is Reason.NO_DOMINANT_STATE
    assert night.modes.found[0]


def test_g4_05_half_a_night_at_the_usual_clock_compares_with_nights_at_that_clock() -> None:
    """G4-05: no single number for both states; one for the state that the baseline is of."""
    taken = samples([10.0, 14.0] * 10, hz=np.array([[FAST, SLOW] * 10]))
    assert ms(summarise(taken, np.array([FAST]))) == pytest.approx(10.0)
    assert ms(summarise(taken, np.array([SLOW]))) == pytest.approx(14.0)


def test_g4_05_a_ramp_that_throttles_is_left_out_and_counted() -> None:
    """G4-05: 10 → 20 ms while the thermal status goes 0 → 3: four good samples are too few."""
    ramp = samples([10 + 10 * i / 19 for i in range(20)])
    hot = replace(ramp, throttled=np.arange(20)[None, :] >= 4)
    night = summarise(hot)
    assert reason(night) is Reason.FEW_GOOD
    assert (night.throttled[0], night.good[0], night.measured[0]) == (16, 4, 20)


def test_g4_05_a_ramp_without_a_thermal_status_is_no_number() -> None:
    """G4-05: nothing says why, but 10 → 20 ms is not one state."""
    assert reason(summarise(samples([10 + 10 * i / 19 for i in range(20)]))) is Reason.RAMP


def test_g4_05_a_run_at_41_degrees_is_over_the_ceiling() -> None:
    """G4-05: every sample is left out and counted, and the night is inconclusive."""
    night = summarise(samples([10.0] * 20, battery_c=41.0))
    assert reason(night) is Reason.FEW_GOOD
    assert night.hot[0] == 20
    assert reason(summarise(samples([10.0] * 20, battery_c=40.0))) is Reason.NONE


def test_a_gpu_is_warmer_than_a_battery_may_be() -> None:
    """A die at 60 °C is a phone at work, and a server's GPU at rest: an H200 lost every pair of a duel."""
    night = summarise(samples([10.0] * 20, temp_c=np.full((1, 20), 60.0), battery_c=36.0))
    assert reason(night) is Reason.NONE
    assert night.hot[0] == 0


def test_warm_batteries_are_told_of_many_series_at_once() -> None:
    made = samples(*[[10.0] * 20 for _ in range(5)], battery_c=0.0)
    warm = replace(made, battery_mc=np.array([30_000, np.nan, 41_000, 40_000, 60_000]))
    assert summarise(warm).hot.tolist() == [0, 0, 20, 0, 20]


@pytest.mark.parametrize(
    ("hot", "expected"), [(10, Reason.NONE), (15, Reason.NONE), (16, Reason.FEW_GOOD)], ids=str
)
def test_g4_05_warm_samples_are_left_out_one_by_one(hot: int, expected: Reason) -> None:
    """G4-05: five good ones are enough, four are not; the warm ones do not move the number."""
    temps = np.array([[75.0] * (20 - hot) + [86.0] * hot])
    night = summarise(samples([10.0] * (20 - hot) + [13.0] * hot, hz=np.full((1, 20), FAST), temp_c=temps))
    assert reason(night) is expected
    assert night.hot[0] == hot
    if expected is Reason.NONE:
        assert ms(night) == pytest.approx(10.0)


def test_the_median_is_of_the_dominant_clock_state() -> None:
    hz = np.array([[SLOW] * 6 + [FAST] * 14])
    night = summarise(samples([21.2] * 6 + [11.9, 12.0] * 7, hz=hz))
    assert Basis(int(night.basis[0])) is Basis.CLOCK_STATE
    assert ms(night) == pytest.approx(np.sqrt(11.9 * 12.0))
    assert (night.clock_hz[0], night.used[0]) == (FAST, 14)


def test_clocks_within_five_percent_are_one_state() -> None:
    hz = np.array([[900e6, 930e6, 940e6, 920e6] * 5])
    assert summarise(samples([10.0] * 20, hz=hz)).used[0] == 20


def test_without_clocks_the_20th_percentile_stands_for_the_night_and_says_so() -> None:
    times = [10.0 + 0.01 * i for i in range(16)] + [12.5] * 4
    night = summarise(samples(times))
    assert Basis(int(night.basis[0])) is Basis.PERCENTILE_20
    assert night.log_ns[0] == pytest.approx(np.quantile(np.log(np.array(times) * MS), 0.2))


def test_one_unknown_clock_makes_the_clocks_unknown() -> None:
    hz = np.full((1, 20), FAST)
    hz[0, 3] = 0
    assert Basis(int(summarise(samples([10.0] * 20, hz=hz)).basis[0])) is Basis.PERCENTILE_20


@pytest.mark.parametrize(("n", "expected"), [(9, Reason.FEW_MEASURED), (10, Reason.NONE)], ids=str)
def test_ten_samples_are_needed(n: int, expected: Reason) -> None:
    assert reason(summarise(samples([10.0] * n))) is expected


def test_no_time_is_no_sample() -> None:
    night = summarise(samples([0.0] * 5 + [10.0] * 10))
    assert (night.measured[0], ms(night)) == (10, pytest.approx(10.0))


def test_two_modes_at_one_clock_leave_the_one_that_prevails() -> None:
    hz = np.full((1, 20), FAST)
    assert ms(summarise(samples([10.0] * 6 + [14.0] * 14, hz=hz))) == pytest.approx(14.0)
    assert reason(summarise(samples([10.0] * 9 + [14.0] * 11, hz=hz))) is Reason.TWO_MODES


@given(st.lists(st.sampled_from([10.0, 10.1, 10.2, 10.3, 15.0, 15.2, 30.0]), min_size=2, max_size=30))
def test_modes_are_those_of_clocks_split(times: list[float]) -> None:
    """Both say the same wherever their scales (logarithm here) cannot matter: of two gaps between these
    levels the same one is wider in either."""
    split_by_hand = split([round(t * MS) for t in times])
    found = modes_of(np.log(np.array([times]) * MS))
    if split_by_hand is None:
        # A gap of a third of a mode's spread more or less is a matter of the scale.
        assert not found.found[0] or found.slow[0] - found.fast[0] > 0.14
    else:
        assert not found.found[0] or found.fast_n[0] == len(split_by_hand[0])


@given(st.floats(0.01, 100), st.integers(0, 2**32 - 1))
def test_a_unit_changes_nothing_but_the_level(factor: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = np.exp(rng.normal(0, 0.03, (4, 20))) * np.where(rng.random((4, 20)) < 0.3, 1.4, 1.0) * MS
    blank = np.full((4, 20), np.nan)
    cold = np.zeros((4, 20), np.bool_)
    hz = np.where(rng.random((4, 20)) < 0.3, SLOW, FAST)
    for clocks in (blank, hz):
        one = summarise(Samples(times, clocks, blank, cold))
        other = summarise(Samples(times * factor, clocks, blank, cold))
        np.testing.assert_array_equal(one.reason, other.reason)
        np.testing.assert_allclose(
            other.log_ns - one.log_ns, np.where(one.reason == 0, np.log(factor), np.nan), atol=1e-9
        )


def test_many_series_are_summarised_like_each_alone() -> None:
    rng = np.random.default_rng(5)
    times = np.exp(rng.normal(0, 0.02, (20_050, 12))) * MS
    blank = np.full(times.shape, np.nan)
    made = Samples(times, blank, blank, np.zeros(times.shape, np.bool_))
    last = Samples(times[-7:], blank[-7:], blank[-7:], np.zeros((7, 12), np.bool_))
    np.testing.assert_array_equal(summarise(made).log_ns[-7:], summarise(last).log_ns)
    assert summarise(Samples(times[:0], blank[:0], blank[:0], blank[:0] > 0)).log_ns.shape == (0,)
