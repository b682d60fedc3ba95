"""Who is told: new, expired and returned findings; never what was refuted the same night."""

from dataclasses import replace
from datetime import date

import pytest

from orchestrator.analysis.alerts import alarm, alerts
from orchestrator.domain.finding import Finding, Findings, Triage, TriageState

TODAY = date(2026, 12, 5)
FOUND = Finding("0a", "speed", "regressed", "SM8650", "c1")


def decided(state: TriageState, expires: str = "") -> Finding:
    return replace(FOUND, triage=Triage(state, "ana", expires=expires))


def test_a_finding_that_nobody_decided_about_is_new() -> None:
    assert alarm(FOUND, TODAY) == "new"
    assert alarm(decided("new"), TODAY) == "new"


@pytest.mark.parametrize("state", ["acknowledged", "noise", "accepted", "fixed"])
def test_a_decision_keeps_it_quiet(state: TriageState) -> None:
    assert alarm(decided(state), TODAY) == ""


@pytest.mark.parametrize("state", ["acknowledged", "noise"])
def test_a_decision_ends_the_day_after_its_date(state: TriageState) -> None:
    assert alarm(decided(state, expires="2026-12-05"), TODAY) == ""
    assert alarm(decided(state, expires="2026-12-04"), TODAY) == f"{state} until 2026-12-04, which has passed"
    assert alarm(decided(state, expires="tomorrow"), TODAY) == f"{state} until tomorrow, which has passed"


@pytest.mark.parametrize("state", ["acknowledged", "noise"])
@pytest.mark.parametrize(
    ("then", "low", "high", "told"),
    [
        (0.05, 0.04, 0.09, ""),
        (0.05, 0.065, 0.2, ""),
        (0.05, 0.38, 0.43, "at 5.1 % slower, now 49.9 % slower"),
        (-0.05, -0.43, -0.38, "at 4.9 % faster, now 33.3 % faster"),
        (0.0, 0.38, 0.43, ""),
    ],
)
def test_what_grew_since_is_another_change(
    state: TriageState, then: float, low: float, high: float, told: str
) -> None:
    grown = replace(decided(state), effect=(low + high) / 2, low=low, high=high)
    assert grown.triage is not None
    grown = replace(grown, triage=replace(grown.triage, effect=then))
    assert alarm(grown, TODAY) == (f"{state} {told}" if told else "")
    assert alarm(replace(grown, kind="numerics"), TODAY) == ""


def test_what_was_fixed_and_is_found_again_says_so() -> None:
    back = replace(FOUND, triage=Triage("fixed", decided_at="2026-12-02T09:00:00+00:00", again=True))
    assert alarm(back, TODAY) == "regressed again, marked fixed on 2026-12-02"


@pytest.mark.parametrize("finding", [FOUND, decided("acknowledged", expires="2026-12-01")])
def test_what_a_second_look_refuted_is_told_to_nobody(finding: Finding) -> None:
    assert alarm(replace(finding, confirmed="no"), TODAY) == ""


def test_a_known_slowness_is_no_news_until_somebody_decides() -> None:
    known = replace(FOUND, expected="slow within 10 %")
    assert alarm(known, TODAY) == ""
    assert alarm(replace(decided("acknowledged", expires="2026-12-01"), expected="slow"), TODAY) != ""


def test_alerts_keep_the_order_of_findings() -> None:
    found = [FOUND, decided("noise"), replace(FOUND, finding_id="0b"), replace(FOUND, confirmed="yes")]
    document = Findings("r", "nightly", [], "", {}, findings=found)
    assert alerts(document, TODAY) == [found[0], found[2], found[3]]
