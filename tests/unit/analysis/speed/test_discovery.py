"""What is unusual among many tests, what two phones say, and what the budget pays for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analysis.speed.discovery import affordable, q_values, screen
from orchestrator.analysis.speed.moderated import Deltas
from orchestrator.analysis.speed.pooled import pool
from orchestrator.analysis.speed.rule import RULE


@given(st.lists(st.floats(0, 1) | st.just(float("nan")), min_size=1, max_size=30))
def test_q_values_are_benjamini_and_hochbergs(p: list[float]) -> None:
    """Rejected at q are exactly the smallest k with p(k) ≤ q·k/m."""
    array = np.array(p)
    q = q_values(array)
    known = np.sort(array[~np.isnan(array)])
    m = len(known)
    passing = [k for k in range(1, m + 1) if known[k - 1] <= RULE.q * k / m]
    limit = known[max(passing) - 1] if passing else -1.0
    close = np.isclose(q, RULE.q, rtol=1e-9)
    np.testing.assert_array_equal((q <= RULE.q)[~close], (array <= limit)[~close])
    np.testing.assert_array_equal(np.isnan(q), np.isnan(array))


def test_small_unusual_changes_and_single_phones_are_no_findings() -> None:
    p = np.array([1e-9, 1e-9, 1e-9, 0.5])
    delta = np.array([0.05, 0.015, 0.05, 0.0])
    agree = np.array([True, True, False, True])
    changed = np.array([True, True, True, True])
    said = screen(p, delta, agree, changed, np.full(4, RULE.threshold))
    assert said.found.tolist() == [True, False, False, False]
    assert said.suspect.tolist() == [False, True, True, False]
    own = screen(p, delta, agree, ~changed, np.array([0.06, 0.01, 0.02, 0.02]))
    assert own.found.tolist() == [False, True, False, False]
    assert not own.suspect.any()


def phones(
    delta: list[float], test: list[int], se: float = 0.01
) -> tuple[Deltas, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    n = len(delta)
    given_ = Deltas(np.array(delta), np.full(n, se), np.full(n, 13.0), np.full(n, 0.5), np.full(n, 14))
    return given_, np.array(test, np.int64)


def test_phones_are_averaged_and_two_must_agree() -> None:
    each, test = phones([0.05, 0.04, 0.00, 0.15, 0.0, 0.0, 0.05], [0, 0, 0, 1, 1, 1, 2])
    said = pool(each, test, 4)
    assert said.delta[:3] == pytest.approx([0.03, 0.05, 0.05])
    assert said.phones.tolist() == [3, 3, 1, 0]
    assert said.agree.tolist() == [True, False, False, False]
    assert np.isnan(said.delta[3])
    assert np.isnan(said.p[3])


def test_pooled_error_and_freedom_of_equal_phones() -> None:
    """Three equal phones: the error shrinks by √3, and the degrees of freedom add up."""
    each, test = phones([0.02, 0.02, 0.02], [0, 0, 0])
    said = pool(each, test, 1)
    assert said.se[0] == pytest.approx(0.01 / np.sqrt(3))
    assert said.df[0] == pytest.approx(39)


def test_a_phone_without_a_delta_does_not_count() -> None:
    each, test = phones([0.05, float("nan")], [0, 0])
    assert pool(each, test, 1).phones[0] == 1


def test_the_budget_goes_to_the_least_likely_first() -> None:
    p = np.array([0.03, 0.001, 0.02, 0.01, 0.5])
    wanted = np.array([True, True, True, True, False])
    chosen = affordable(p, wanted, np.array([10.0, 10, 10, 10, 1]), 25)
    assert chosen.tolist() == [False, True, False, True, False]
    assert not affordable(p, wanted, np.full(5, 10.0), 9).any()
