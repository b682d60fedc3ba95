"""Log times split into the level of a phone's night and what is a variant's own."""

import numpy as np
import pytest

from orchestrator.analysis.best.levels import connected, levels, middle
from orchestrator.analysis.speed.rows import Floats

NAN = float("nan")


def made(own: list[float], level: Floats) -> Floats:
    """(variants, phones, nights) without noise; ``level``: (phones, nights)."""
    return np.array(own)[:, None, None] + level[None]


LEVEL = np.array([[0.0, 0.3, -0.1, 0.2], [1.0, 1.1, 0.9, 1.4]])


def test_own_ratios_come_back_whatever_phones_and_nights_do() -> None:
    found = levels(made([0.0, 0.1, 0.5], LEVEL))
    assert found.score - found.score[0] == pytest.approx([0.0, 0.1, 0.5])
    assert found.own[:, 0] == pytest.approx(found.own[:, 1])


def test_a_complete_table_is_held_against_the_geometric_mean_of_its_night() -> None:
    log_ns = made([0.0, 0.1, 0.5], LEVEL)
    found = levels(log_ns)
    assert found.own[:, 0] == pytest.approx((log_ns - log_ns.mean(axis=0)).mean(axis=2)[:, 0])
    assert found.level + found.score[1] == pytest.approx(log_ns[1].mean(axis=1))


def test_a_night_without_its_slowest_variant_is_no_faster_night() -> None:
    log_ns = made([0.0, 0.1, 2.0], LEVEL)
    log_ns[2, 0, 1:] = NAN
    log_ns[0, 1, 0] = NAN
    found = levels(log_ns)
    assert found.score - found.score[0] == pytest.approx([0.0, 0.1, 2.0], abs=1e-6)


def test_a_phone_that_lacks_variants_compares_all_the_same() -> None:
    log_ns = made([0.0, 0.1, 2.0], LEVEL)
    log_ns[2, 1] = NAN
    found = levels(log_ns)
    assert np.isnan(found.own[2, 1])
    assert found.score - found.score[0] == pytest.approx([0.0, 0.1, 2.0], abs=1e-6)


def test_one_odd_phone_of_three_moves_no_score() -> None:
    level = np.zeros((3, 4))
    log_ns = made([0.0, 0.1, 0.2], level)
    log_ns[1, 2] -= 0.5
    found = levels(log_ns)
    assert found.score[1] - found.score[0] == pytest.approx(0.1, abs=1e-6)


def test_variants_that_never_met_have_no_score() -> None:
    log_ns = made([0.0, 0.1, -1.0], LEVEL)
    log_ns[2, :, :3] = NAN
    log_ns[:2, :, 3] = NAN
    found = levels(log_ns)
    assert np.isnan(found.score[2])
    assert not found.used[2].any()
    assert found.score[1] - found.score[0] == pytest.approx(0.1)


def test_rows_connect_by_way_of_others() -> None:
    there = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]], np.bool_)
    assert connected(there).tolist() == [True, True, True, False]
    assert connected(np.zeros((2, 3), np.bool_)).tolist() == [False, False]


def test_the_middle_leaves_nan_out() -> None:
    values = np.array([[3.0, 1.0, 2.0], [NAN, 1.0, 2.0], [NAN, NAN, NAN]])
    assert middle(values)[:2].tolist() == [2.0, 1.5]
    assert np.isnan(middle(values)[2])
