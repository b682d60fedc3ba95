"""Since when a series is where it is: the last step, down to a single night."""

import numpy as np
import pytest

from orchestrator.analysis.speed.levels import steps
from orchestrator.analysis.speed.rows import Bools

SD = 0.005


def marks(*nights: int, of: int = 30) -> Bools:
    found = np.zeros(of, np.bool_)
    found[list(nights)] = True
    return found


def series(*parts: tuple[int, float], seed: int = 1) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    level = np.concatenate([np.full(nights, value) for nights, value in parts])
    return level + np.random.default_rng(seed).normal(0, SD, len(level))


def test_two_steps_are_two_even_where_the_last_is_of_one_night() -> None:
    found = steps(series((17, 0.0), (12, 0.06), (1, 0.14)), SD, marks())
    assert [s.night for s in found] == [17, 29]
    assert [s.size for s in found] == pytest.approx([0.06, 0.08], abs=0.02)


@pytest.mark.parametrize("seed", range(20))
def test_a_steady_series_has_none(seed: int) -> None:
    assert steps(series((30, 0.0), seed=seed), SD, marks()) == []


def test_nights_without_a_number_end_nothing_and_a_mark_among_them_counts() -> None:
    """3.6 standard deviations: a step only in a night with new code, also where that night has no number."""
    values = np.concatenate([np.zeros(15), np.full(2, 3.6 * SD / np.sqrt(2) * 1.07)])
    values = np.concatenate([values[:15], [np.nan], values[15:]])
    assert steps(values, SD, marks(of=18)) == []
    assert [s.night for s in steps(values, SD, marks(15, of=18))] == [16]
