"""The goals of statistics.md in small: python -m benchmarks.detection is the long form, with figures.

Bounds lie far from what a right analysis gives; each of them was seen to fail with a step of the rule broken
(the common shift left in, clock states mixed, last night alone as baseline, and no confirmation).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.simulation.goals import BASE, Proportion, Scenario, detection, quiet
from benchmarks.simulation.season import SUITE, Season, Shape
from benchmarks.simulation.tables import Goal
from orchestrator.analysis.speed.rule import Rule
from orchestrator.history.history import History
from orchestrator.verdicts.nights import load

SMALL = 600
"""Variants of each of three phones."""
HARD = replace(BASE, rho=0.6, slow_run=4.0, missing=0.15)


def test_changes_are_found_in_the_same_night() -> None:
    found = detection(Scenario("small", BASE), farms=1, seed=3, variants=SMALL)
    assert found.five.of == 36
    assert found.five.share >= 0.9
    assert found.three.share >= 0.7
    assert found.one_phone.share >= 0.5
    assert found.false.share <= 0.05
    assert found.cost <= 0.02


def test_changes_are_found_under_hard_noise() -> None:
    """Clock states that last, correlated samples, missing nights and a swapped phone."""
    found = detection(Scenario("hard", HARD, swaps=True), farms=3, seed=3, variants=SMALL)
    assert found.five.share >= 0.8
    assert found.false.hits <= 1


def test_nights_without_change_raise_no_alarm() -> None:
    for scenario in (Scenario("code changed", BASE), Scenario("code unchanged", HARD, changed=0.0)):
        nothing = quiet(scenario, nights=12, seed=3, variants=SMALL)
        assert nothing.screened.of == 12 * SMALL
        assert nothing.screened.hits <= 3
        assert nothing.below.share < 0.003
        assert nothing.alarms.hits == 0


def test_a_small_farm_raises_no_alarm_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of a hundred of its samples would pay for no second look."""
    hard = Scenario("small", HARD, swaps=True)
    assert quiet(hard, nights=60, seed=3, variants=30).alarms.hits == 0

    def share(rule: Rule, measured: int) -> float:
        return rule.budget * measured

    monkeypatch.setattr(Rule, "samples_for_confirmation", share)
    assert quiet(hard, nights=60, seed=3, variants=30).alarms.hits > 2


def test_proportions_have_exact_intervals() -> None:
    low, high = Proportion(0, 3000).interval
    assert low == 0
    assert 0.001 < high < 0.00125
    assert Proportion(0, 0).interval == (0.0, 1.0)
    assert Proportion(1, 2) + Proportion(2, 3) == Proportion(3, 5)


def test_a_goal_is_met_by_the_whole_interval_only() -> None:
    least, most = Goal("found", 0.95, True), Goal("false", 0.05, False)
    assert least.answer(Proportion(1000, 1000)) == "met"
    assert least.answer(Proportion(20, 20)) == "met, and its interval reaches over"
    assert least.answer(Proportion(18, 20)) == "missed, within its interval, by 5 points"
    assert least.answer(Proportion(800, 1000)) == "missed, by 15 points"
    assert most.answer(Proportion(0, 1000)) == "met"
    assert most.answer(Proportion(200, 1000)) == "missed, by 15 points"


def test_a_made_season_is_a_history_that_can_be_asked(tmp_path: Path) -> None:
    """Files of ``benchmarks.history``: each night's trials, whole by their digests."""
    season = Season(Shape(phones=4, cases=12, nights=8))
    history = History(f"sqlite:///{tmp_path}/tilefarm.db", tmp_path / "history")
    try:
        runs = [run_id for run_id, _ in season.nights(history)]
        assert history.check() == []
        nights = load(history, SUITE, runs[-1])
        assert nights.table.runs == runs
        assert nights.table.log_ns.shape == (48, 8)
        assert np.isfinite(nights.table.log_ns).all()
        assert nights.accepted.all()
        assert history.store(season.results(8, slower=3))
    finally:
        history.close()
