"""Drift since pinned runs: steps that were accepted, or too small to be found, add up there; phones are never
pooled, and another clock or a swapped phone is another machine."""

from math import log

import pytest

from orchestrator.domain.finding import Findings
from orchestrator.history.history import History
from tests.unit.verdicts.small_farm import CASES, PHONES, SOC, SmallFarm, run_id


def creeping(night: int, _phone: str, _case: str) -> float:
    """0.5 % a night since the fourth."""
    return 0.005 * max(0, night - 3)


def pinned(history: History, farm: SmallFarm, last: int, **pins: int) -> Findings:
    farm.nights(1, last - 1)
    for name, night in pins.items():
        history.baselines.pin(name, run_id(night), "ana", "")
    return farm.night(last)


def test_small_steps_add_up_since_a_release(history: History) -> None:
    told = pinned(history, SmallFarm(history, creeping), 20, r1=2, r2=12)
    assert [(d.baseline, d.soc, d.kernel, d.phones, d.cases) for d in told.drift] == [
        ("r2", SOC, "", len(PHONES), len(CASES)),
        ("r2", SOC, "attention_flash", len(PHONES), len(CASES)),
        ("r1", SOC, "", len(PHONES), len(CASES)),
        ("r1", SOC, "attention_flash", len(PHONES), len(CASES)),
    ]
    newest, oldest = told.drift[0], told.drift[2]
    # Medians of nights 14 to 20, of 9 to 13 and of 1 to 5.
    assert newest.effect == pytest.approx(0.03, abs=0.004)
    assert oldest.effect == pytest.approx(0.07, abs=0.004)
    assert oldest.sentence == f"since r1: {(pow(2.718281828, oldest.effect) - 1) * 100:.1f} % slower"


def test_without_a_pin_or_of_another_suite_there_is_no_drift(history: History) -> None:
    farm = SmallFarm(history, creeping)
    assert farm.nights(1, 3).drift == []
    history.baselines.pin("now", run_id(3), "ana", "")
    assert farm.night(3).drift == [], "a run has not drifted from itself"


def test_one_slow_phone_among_three_moves_the_mean_and_not_the_others(history: History) -> None:
    def one_phone(night: int, phone: str, _case: str) -> float:
        return log(1.3) if phone == "two" and night > 3 else 0.0

    told = pinned(history, SmallFarm(history, one_phone), 9, r1=2)
    assert told.drift[0].effect == pytest.approx(log(1.3) / 3, abs=0.004)


def test_what_stays_as_it_was_is_said_to_be_unchanged(history: History) -> None:
    told = pinned(history, SmallFarm(history), 9, r1=2)
    assert [(d.kernel, d.sentence) for d in told.drift] == [("", "since r1: unchanged")]


def test_a_pin_longer_ago_than_the_nights_that_are_looked_at_is_still_compared(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.verdicts.nights.NIGHTS", 12)
    # A step that is told as a shift would bring the nights before it along.
    told = pinned(history, SmallFarm(history, lambda n, _phone, _case: 0.015 * (n > 9)), 20, r1=2)
    assert run_id(2) not in told.nights
    assert told.drift[0].effect == pytest.approx(0.015, abs=0.004)
