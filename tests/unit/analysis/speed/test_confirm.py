"""Two codes in turns on one phone: different, the same, or more samples."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.simulation.nights import measure_in_turns
from benchmarks.simulation.noise import Noise
from orchestrator.analysis.speed.confirm import (
    LOOKS,
    Answer,
    Decision,
    Interleaved,
    decide,
    decision,
    differences,
)
from orchestrator.analysis.speed.rows import Floats
from tests.unit.analysis.speed.made import HZ, MS

PATTERN = np.array([0.0, 1.0, 1.0, 0.0])


def turns(effect: float, pairs: int = 16, seed: int = 1, sd: float = 0.005) -> Interleaved:
    """Times in ms around 10, all at one clock."""
    code = np.tile(PATTERN, pairs // 2)
    times: Floats = np.exp(
        np.random.default_rng(seed).normal(0, sd, (1, len(code))) + code * np.log1p(effect)
    )
    shape = times.shape
    return Interleaved(
        times * 10 * MS, np.full(shape, HZ), np.full(shape, 30_000.0), np.zeros(shape, np.bool_)
    )


def answers(effect: float, noise: Noise, rows: int = 400) -> tuple[Floats, Floats]:
    """Share of the answers same, unknown, different; samples used."""
    rng = np.random.default_rng(11)
    answer, _, used = measure_in_turns(rng, np.full(rows, 16.0), np.full(rows, np.log1p(effect)), noise)
    return np.bincount(answer + 1, minlength=3) / rows, used


def test_a_slow_down_is_different_and_measured() -> None:
    said = decision(turns(0.05))
    assert said.answer is Answer.DIFFERENT
    assert np.expm1(said.effect) == pytest.approx(0.05, abs=0.006)
    assert said.low < said.effect < said.high
    assert (said.pairs, said.valid) == (16, 16)


def test_equal_codes_are_the_same() -> None:
    said = decision(turns(0.0))
    assert said.answer is Answer.SAME


def test_half_the_threshold_is_never_different() -> None:
    assert decision(turns(0.01, sd=0.001)).answer is Answer.SAME


def test_noise_leaves_every_look_open() -> None:
    said = [decision(turns(0.01, look.pairs, sd=0.05)) for look in LOOKS]
    assert [s.answer for s in said] == [Answer.UNKNOWN] * 3


def test_a_steady_drift_is_no_difference() -> None:
    """Five per cent in the time of one look, as while a phone warms."""
    warm = turns(0.0)
    n = warm.latency_ns.shape[1]
    drifting = replace(warm, latency_ns=warm.latency_ns * np.exp(np.linspace(0, 0.05, n)))
    assert decision(drifting).answer is Answer.SAME


def test_pairs_across_clock_states_or_throttled_do_not_count() -> None:
    clean = turns(0.0)
    hz, hot = clean.gpu_hz.copy(), clean.throttled.copy()
    hz[0, 0:2] = HZ * 0.8  # both of the first pair: one state
    hz[0, 4] = HZ * 0.8  # one of the third pair
    hot[0, 9] = True  # one of the fifth
    taken = differences(replace(clean, gpu_hz=hz, throttled=hot))
    assert np.flatnonzero(np.isnan(taken[0])).tolist() == [2, 4]


def test_throttled_throughout_is_unknown() -> None:
    clean = turns(0.05)
    said = decision(replace(clean, throttled=np.ones_like(clean.throttled)))
    assert (said.answer, said.valid, said.p) == (Answer.UNKNOWN, 0, 1.0)


def test_modes_in_the_times_alone_make_no_difference() -> None:
    """Without clocks, modes are found in both codes alike, or a mode of one code would be its effect."""
    shares, _ = answers(0.0, Noise(clocks=False))
    assert shares[2] <= 0.005
    assert answers(0.05, Noise(clocks=False))[0][2] > 0.85


@pytest.mark.parametrize(
    "noise", [Noise(), Noise(rho=0.6), Noise(slow_run=4)], ids=["ar 0.5", "ar 0.6", "sticky"]
)
def test_answers_hold_under_noise(noise: Noise) -> None:
    nothing, used = answers(0.0, noise)
    assert nothing[2] == 0
    assert nothing[0] > 0.95
    assert used.mean() < 60
    assert answers(0.03, noise)[0][2] > 0.95
    assert answers(0.05, noise)[0][2] > 0.98
    assert answers(np.expm1(0.0198), noise)[0][0] < 0.08  # the threshold itself is called none


@settings(max_examples=30)
@given(st.floats(-0.1, 0.1), st.floats(0.01, 100), st.integers(0, 1000))
def test_faster_mirrors_slower_and_units_do_not_matter(effect: float, unit: float, seed: int) -> None:
    one = turns(effect, seed=seed, sd=0.01)
    two = replace(one, latency_ns=unit / one.latency_ns)
    slower, faster = decision(one), decision(two)
    assert slower.answer is faster.answer
    assert slower.effect == pytest.approx(-faster.effect, abs=1e-9)
    assert slower.low == pytest.approx(-faster.high, abs=1e-9)


def test_wrong_numbers_of_samples_are_refused() -> None:
    six = np.full((1, 6), 1e6)
    with pytest.raises(ValueError, match="whole fours"):
        differences(Interleaved(six, six, six, six < 0))
    with pytest.raises(ValueError, match=r"1 × 6 pairs: looks are at \[16, 28, 48\]"):
        decision(turns(0.0, pairs=6))


def test_many_comparisons_are_decided_like_each_alone() -> None:
    one, two = turns(0.0, seed=1), turns(0.05, seed=2)
    both = np.concatenate([differences(one), differences(two)])
    both[1, 3] = np.nan
    said = decide(both, 0)
    first: Decision = decision(one)
    assert (said.answer[0], said.effect[0], said.p[0]) == (-1, first.effect, first.p)
    assert (said.answer[1], said.valid[1]) == (1, 15)
