from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analysis.stats import quantile, timing_stats, wall_stats
from tests.results_fixture import timing


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=60), st.floats(0, 1))
def test_quantile_is_numpys_default(samples: list[int], q: float) -> None:
    assert quantile(sorted(samples), q) == pytest.approx(np.quantile(samples, q), rel=1e-12, abs=1e-3)


def test_median_and_spread_of_known_samples() -> None:
    stats = timing_stats(replace(timing(), wall_ns=[10, 20, 30, 40, 50]))
    assert stats is not None
    assert (stats.min_ns, stats.q1_ns, stats.median_ns, stats.q3_ns, stats.max_ns) == (10, 20, 30, 40, 50)
    assert stats.spread == pytest.approx(20 / 30)
    assert stats.noisy


@pytest.mark.parametrize(
    ("gpu_timer", "clock", "note"),
    [
        ("trusted", "gpu", ""),
        ("disagrees", "wall", "GPU timer disagrees with the wall clock"),
        ("absent", "wall", "no GPU timer"),
        ("disjoint", "wall", "GPU timer was interrupted (disjoint)"),
    ],
)
def test_clock_follows_the_timers_trust(gpu_timer: str, clock: str, note: str) -> None:
    made = replace(timing(), gpu_ns=[7, 7, 7], wall_ns=[9, 9, 9], gpu_timer=gpu_timer)
    stats = timing_stats(made)
    assert stats is not None
    assert (stats.clock, stats.clock_note) == (clock, note)
    assert stats.median_ns == (7 if clock == "gpu" else 9)


def test_one_sample_has_no_spread() -> None:
    stats = timing_stats(replace(timing(), wall_ns=[5]))
    assert stats is not None
    assert (stats.n, stats.spread) == (1, 0.0)


def test_no_time_is_no_statistic() -> None:
    assert timing_stats(None) is None
    assert timing_stats(replace(timing(), wall_ns=[])) is None


def test_a_clock_that_did_not_run_is_no_fast_kernel() -> None:
    assert timing_stats(replace(timing(), gpu_ns=[0, 0, 1], gpu_timer="trusted")) is None


def test_the_wall_clock_is_there_whatever_the_gpu_timer_says() -> None:
    made = replace(timing(), gpu_ns=[7, 7, 7], wall_ns=[9, 9, 9], gpu_timer="trusted")
    stats = wall_stats(made)
    assert stats is not None
    assert (stats.clock, stats.median_ns) == ("wall", 9)
    assert wall_stats(None) is None
    assert wall_stats(replace(made, wall_ns=[])) is None
