"""Levels over a season, against ruptures and by hand."""

from importlib import import_module

import numpy as np
import pytest

from orchestrator.analysis.speed.changepoint import noise, penalty, segments

RUPTURES = import_module("ruptures")  # has no types; used here only


def steps(seed: int, rows: int = 40, nights: int = 90) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    rng = np.random.default_rng(seed)
    level = np.cumsum(rng.normal(0, 0.03, (rows, nights)) * (rng.random((rows, nights)) < 0.04), axis=1)
    return level + rng.normal(0, 0.01, (rows, nights))


def test_steps_are_those_that_ruptures_finds() -> None:
    """PELT of another author, same cost and penalty: the same partitions, and as good ones."""
    values = steps(1, rows=20)
    gain, sd = penalty(np.array([90]))[0], noise(values)
    changed = 0
    for row, mine, spread in zip(values, segments(values), sd, strict=True):
        search = RUPTURES.Pelt(model="l2", min_size=3, jump=1).fit((row / spread)[:, None])
        assert [s.last + 1 for s in mine] == search.predict(pen=gain)
        changed += len(mine) > 1
    assert changed > 10


def test_a_step_is_found_where_it_is() -> None:
    row = np.random.default_rng(2).normal(15, 0.01, (1, 90))
    row[0, 60:] += 0.05
    before, after = segments(row)[0]
    assert abs(after.first - 60) <= 1
    assert after.level - before.level == pytest.approx(0.05, abs=0.006)
    assert (before.nights + after.nights, after.last) == (90, 89)


def test_a_slow_drift_that_no_night_shows_is_found() -> None:
    rows = np.random.default_rng(2).normal(0, 0.01, (100, 90)) + np.linspace(0, 0.04, 90)
    found = segments(rows)
    assert np.mean([len(s) > 1 for s in found]) > 0.95
    assert np.median([s[-1].level - s[0].level for s in found]) > 0.02


def test_few_series_without_change_show_one() -> None:
    rows = np.random.default_rng(3).normal(0, 0.01, (4_000, 60))
    assert np.mean([len(s) > 1 for s in segments(rows)]) < 0.003


def test_two_bad_nights_are_no_segment() -> None:
    row = np.random.default_rng(4).normal(0, 0.01, (1, 60))
    row[0, 30:32] += 0.5
    assert all(s.nights >= 3 for s in segments(row)[0])


def test_absent_nights_are_closed_up() -> None:
    row = np.random.default_rng(5).normal(0, 0.01, (1, 90))
    row[0, 45:] += 0.05
    row[0, 40:50] = np.nan
    row[0, :3] = np.nan
    before, after = segments(row)[0]
    assert (before.first, before.last, after.first, after.last) == (3, 39, 50, 89)


@pytest.mark.parametrize("nights", [0, 1, 2, 5])
def test_short_series_are_one_segment(nights: int) -> None:
    row = np.full((1, 6), np.nan)
    row[0, :nights] = np.arange(nights)
    found = segments(row)[0]
    assert [s.nights for s in found] == ([nights] if nights else [])


def test_a_series_without_noise_is_one_segment() -> None:
    assert len(segments(np.zeros((1, 30)))[0]) == 1


def test_neither_unit_nor_sign_matters() -> None:
    values = steps(6)
    cuts = [[s.first for s in row] for row in segments(values)]
    assert [[s.first for s in row] for row in segments(values + 3.0)] == cuts
    assert [[s.first for s in row] for row in segments(-values)] == cuts
