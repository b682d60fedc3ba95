"""Known flakes and slowness: no news while they last, news once gone, and bound to SoC, driver and date."""

from dataclasses import replace
from datetime import date

import pytest

from orchestrator.analysis.alerts import alerts
from orchestrator.domain.expectation import Expectation
from orchestrator.domain.finding import Findings
from orchestrator.domain.verdict import Verdict
from orchestrator.history.history import History
from tests.unit.verdicts.small_farm import SLOW, SmallFarm, of_case

TODAY = date(2026, 12, 20)
SLOWER = Expectation(
    when=f"case={SLOW}",
    verdict=Verdict.PASS,
    soc="SM8*",
    driver="*Mesa*",
    reason="driver 744 spills",
    owner="ana",
    expires=date(2027, 3, 1),
    line=41,
    kind="slow",
    slower=1.12,
)
FLAKE = replace(SLOWER, kind="flakes", verdict=Verdict.NONDETERMINISTIC, replays=59, nights=3, slower=0.0)
WORDS = "driver 744 spills (owner ana, matrix.yaml:41, until 2027-03-01)"


def slower_by(log_ratio: float):
    def slower(night: int, _phone: str, case_id: str) -> float:
        return log_ratio if case_id == SLOW and night >= 10 else 0.0

    return slower


def tenth_night(history: History, log_ratio: float, *known: Expectation) -> Findings:
    farm = SmallFarm(history, slower_by(log_ratio), expectations=known)
    return farm.nights(1, 10)


def test_a_known_slowness_within_its_bound_is_no_news(history: History) -> None:
    told = tenth_night(history, 0.08, SLOWER)
    (found,) = of_case(told)
    assert found.expected == f"known to be up to 12.0% slower: {WORDS}"
    assert alerts(told, TODAY) == []
    assert told.counts["expected"] == 1
    assert told.unexpected == []


def test_beyond_its_bound_it_is_news_that_names_the_bound(history: History) -> None:
    told = tenth_night(history, 0.16, SLOWER)
    (found,) = alerts(told, TODAY)
    assert found.detail.endswith(f"; beyond the 12.0% that are known: {WORDS}")


@pytest.mark.parametrize(
    "other",
    [
        replace(SLOWER, soc="SM8"),
        replace(SLOWER, driver="*Adreno*"),
        replace(SLOWER, when="attention_flash and seq=65536"),
        replace(SLOWER, expires=date(2026, 12, 9)),
        replace(FLAKE, when=SLOWER.when),
    ],
)
def test_another_soc_driver_case_date_or_kind_covers_nothing(history: History, other: Expectation) -> None:
    assert len(alerts(tenth_night(history, 0.08, other), TODAY)) == 1


@pytest.mark.parametrize("log_ratio", [0.0, -0.08])
def test_what_is_known_to_be_slow_and_is_not_is_unexpected(history: History, log_ratio: float) -> None:
    told = tenth_night(history, log_ratio, SLOWER)
    assert told.unexpected == [
        "1 of 1 cases on SM8650 are not slower than their baseline, although up to 12.0% are known: "
        f"{WORDS}; remove the entry if it stays so"
    ]


def test_a_known_flake_is_no_news_and_its_absence_is_after_so_many_nights(history: History) -> None:
    farm = SmallFarm(history, flaky=frozenset({4, 5}), expectations=[FLAKE])
    told = farm.nights(1, 5)
    (found,) = [f for f in of_case(told) if f.what == "nondeterministic"]
    assert found.expected == f"a known flake: {WORDS}"
    assert alerts(told, TODAY) == []
    assert farm.nights(6, 7).unexpected == []
    assert farm.night(8).unexpected == [
        "1 of 1 cases on SM8650 passed in each of the last 3 nights, although they are known to flake: "
        f"{WORDS}; remove the entry if it stays so"
    ]


def test_a_flake_that_nobody_knows_is_news(history: History) -> None:
    farm = SmallFarm(history, flaky=frozenset({5}))
    assert [f.what for f in alerts(farm.nights(1, 5), TODAY)] == ["nondeterministic"]
