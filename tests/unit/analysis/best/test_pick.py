"""Which of the fastest is shipped, which are on the front, and what stands in for an unknown SoC."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from orchestrator.analysis.best.fallback import fallback
from orchestrator.analysis.best.front import front
from orchestrator.analysis.best.levels import levels
from orchestrator.analysis.best.pick import Candidate, Picked, choose
from orchestrator.domain.case import AxisValue

NAN = float("nan")


def candidate(name: str, nmse: float = 1e-13, **axes: AxisValue) -> Candidate:
    return Candidate(name, nmse, axes)


def picked(own: Sequence[float], candidates: Sequence[Candidate], noise: float = 0.01) -> Picked:
    """Two phones, ten nights; each variant's noise has mean 0, so that ``own`` is what is found."""
    random = np.random.default_rng(3)
    scatter = random.normal(0, noise, (len(own), 2, 10))
    scatter -= scatter.mean(axis=2, keepdims=True)
    log_ns = np.array(own)[:, None, None] + scatter
    return choose(log_ns, levels(log_ns), candidates, range(len(own)))


def test_a_clear_winner_is_taken_whatever_its_error() -> None:
    found = picked([0.0, 0.05], [candidate("a", 1e-6), candidate("b", 1e-13)])
    assert (found.pick, found.fastest, found.tied, found.runner_up) == (0, 0, (), 1)
    assert found.why == ""


def test_of_tied_ones_the_smaller_error_is_taken() -> None:
    found = picked([0.0, 0.001, 0.3], [candidate("a", 1e-6), candidate("b", 1e-13), candidate("c", 0.0)])
    assert (found.pick, found.fastest, found.tied) == (1, 0, (0,))
    assert found.why == "its error is smaller"
    assert found.runner_up == 0
    assert found.against.estimate[0] == pytest.approx(-0.001)


def test_errors_within_a_factor_of_two_are_alike_and_the_smaller_tile_is_taken() -> None:
    found = picked([0.0, 0.001], [candidate("a", 1e-13, tile="64x32"), candidate("b", 1.9e-13, tile="32x16")])
    assert found.pick == 1
    assert found.why == "errors are alike, and its tile is the smallest"


def test_what_is_smaller_is_named_by_its_axes() -> None:
    no_tile = picked([0.0, 0.001], [candidate("a", group=256, vector=4), candidate("b", group=64, vector=4)])
    assert (no_tile.pick, no_tile.why) == (1, "errors are alike, and its group is the smallest")
    larger_tile = [candidate("a", tile="32x16", rows=4), candidate("b", tile="64x16")]
    assert picked([0.0, 0.001], larger_tile).why == "errors are alike, and its tile × rows is the smallest"


def test_an_error_between_two_and_four_times_the_least_is_no_matter_of_sizes() -> None:
    """The fastest is the smallest, and out because of its error alone."""
    some = [
        candidate("a", 3.0, tile="8x8"),
        candidate("b", 1.9, tile="16x8"),
        candidate("c", 1.0, tile="64x8"),
    ]
    found = picked([0.0, 0.001, 0.002], some)
    assert (found.pick, found.why) == (1, "its error is smaller")


def test_the_fastest_of_its_equals_stays() -> None:
    found = picked([0.0, 0.001], [candidate("a", tile="32x16"), candidate("b", tile="32x16")])
    assert (found.pick, found.tied) == (0, (1,))
    assert found.why.startswith("the fastest")


def test_a_tie_never_costs_more_than_two_per_cent() -> None:
    """Noise so large that 10 % cannot be told: the simpler one is not worth the risk."""
    found = picked([0.0, 0.1], [candidate("a", 1e-6), candidate("b", 1e-13)], noise=0.5)
    assert bool(found.against.holds_zero[1])
    assert (found.pick, found.tied) == (0, ())


def test_an_unknown_error_is_the_worst() -> None:
    found = picked([0.0, 0.001], [candidate("a", NAN), candidate("b", 1e-3)])
    assert found.pick == 1


def test_a_single_variant_has_no_runner_up() -> None:
    assert picked([0.0], [candidate("a")]).runner_up is None


def test_one_night_gives_the_fastest_without_ties() -> None:
    log_ns = np.array([[[0.0]], [[0.001]]])
    found = choose(log_ns, levels(log_ns), [candidate("a", 1e-6), candidate("b", 1e-13)], [0, 1])
    assert (found.pick, found.tied) == (0, ())


def test_the_front_has_those_that_none_beats_in_both() -> None:
    points = [(1.0, 5.0), (2.0, 5.0), (2.0, 1.0), (3.0, 2.0), (4.0, 0.0), (1.0, 5.0), (5.0, NAN)]
    assert front(points) == [True, False, True, False, True, True, False]
    assert front([(2.0, NAN), (1.0, NAN)]) == [False, True]
    assert front([]) == []


def test_the_fallback_loses_least_where_it_loses_most() -> None:
    found = fallback({"A": {"x": 0.0, "y": 0.03, "z": 0.01}, "B": {"x": 0.2, "y": 0.0, "w": 0.0}})
    assert found is not None
    assert (found.case_id, found.loss, found.socs) == ("y", 0.03, ("A", "B"))


@pytest.mark.parametrize("ratios", [{}, {"A": {"x": 0.0}}, {"A": {"x": 0.0}, "B": {"y": 0.0}}])
def test_there_is_no_fallback_out_of_nothing(ratios: dict[str, dict[str, float]]) -> None:
    assert fallback(ratios) is None


def test_just_above_two_per_cent_is_no_tie() -> None:
    assert picked([0.0, math.log(1.021)], [candidate("a", 1e-6), candidate("b")], noise=0.2).tied == ()
