"""What people decide about findings, over the nights that follow: quiet, expired, accepted, fixed, back."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from math import expm1

import pytest

from orchestrator.analysis.alerts import alarm, alerts
from orchestrator.domain.finding import Finding, Findings, TriageState
from orchestrator.history.history import History
from orchestrator.triage.decision import Decision, subject_of
from orchestrator.triage.folder import by_finding
from orchestrator.triage.restarts import Restarts
from orchestrator.verdicts.decided import Decided
from tests.unit.verdicts.small_farm import PHONES, SLOW, SOC, SmallFarm, of_case, run_id, verdict

TODAY = date(2026, 12, 20)


def decide(state: TriageState, findings: Findings, about: Sequence[Finding], **more: str) -> Decision:
    return Decision(
        state=state,
        owner="ana",
        about="",
        run=findings.run_id,
        decided=more.get("decided", "2026-12-12T09:00:00+00:00"),
        subjects=tuple(subject_of(f, "") for f in about),
        expires=more.get("expires", ""),
    )


def decided(*decisions: Decision, night: int = 31) -> Decided:
    """As the files would say it of a run of that night."""
    run = (run_id(night), f"2026-12-{night:02d}T01:00:00+00:00")
    return Decided(
        triage={i: d.triage(s, *run) for i, (d, s) in by_finding(decisions).items()},
        restarts=Restarts.of(decisions),
        today=TODAY,
    )


def eight_percent_from(first: int, last: int = 99, phones: Sequence[str] = PHONES, again: int = 99):
    """``again``: night of a second step of the same size."""

    def slower(night: int, phone: str, case_id: str) -> float:
        if case_id != SLOW or phone not in phones or not first <= night <= last:
            return 0.0
        return 0.16 if night >= again else 0.08

    return slower


@pytest.fixture
def farm(history: History) -> SmallFarm:
    """Nine quiet nights, and a case that is 8 % slower since the tenth."""
    made = SmallFarm(history, eight_percent_from(10))
    assert made.nights(1, 9).findings == []
    return made


def test_a_shift_has_one_id_as_long_as_it_lasts(farm: SmallFarm) -> None:
    first, second = farm.night(10), farm.night(11)
    (found,), (later,) = of_case(first), of_case(second)
    assert found.what == "regressed"
    assert (found.finding_id, found.since) == (later.finding_id, run_id(10))


@pytest.mark.parametrize("state", ["acknowledged", "noise"])
def test_what_somebody_looks_after_is_quiet_until_the_date_and_is_counted(
    farm: SmallFarm, state: TriageState
) -> None:
    first = farm.night(10)
    word = decide(state, first, of_case(first), expires="2026-12-20")
    told = farm.night(11, decided(word))
    (found,) = of_case(told)
    assert found.triage is not None
    assert found.triage.owner == "ana"
    assert alerts(told, TODAY) == []
    assert told.counts[state] == 1
    assert told.sentence.endswith(f"of the findings 1 {state}")
    assert alarm(found, date(2026, 12, 21)) == f"{state} until 2026-12-20, which has passed"
    late = farm.night(12, replace(decided(word), today=date(2026, 12, 21)))
    assert late.counts[state] == 0
    (again,) = of_case(late)
    assert again.triage is not None
    assert again.triage.told == f"{state} until 2026-12-20, which has passed"
    assert state not in late.sentence


def test_an_accepted_shift_is_gone_at_once_and_the_next_one_is_found_against_the_new_baseline(
    history: History, farm: SmallFarm
) -> None:
    farm.slower = eight_percent_from(10, again=18)
    told = farm.nights(10, 12)
    (shift,) = of_case(told)
    accepted = decided(decide("accepted", told, [shift]))
    again = farm.night(12, accepted)
    assert of_case(again) == []
    assert verdict(again) == "new"
    words: list[str] = []
    for night in range(13, 18):
        later = farm.night(night, accepted)
        assert of_case(later) == []
        words.append(verdict(later))
    # Nights 10 to 12 told the shift, and count from its acceptance on: the seventh night has a verdict.
    assert words == ["new", "new", "new", "new", "same"]
    (second,) = of_case(farm.night(18, accepted))
    assert second.what == "regressed"
    assert second.finding_id != shift.finding_id
    assert second.since == run_id(18)
    assert expm1(second.effect) == pytest.approx(expm1(0.08), abs=0.02)
    assert second.triage is None, "what was accepted says nothing of a later shift"


def test_without_the_acceptance_the_old_baseline_stays(farm: SmallFarm) -> None:
    shift = of_case(farm.nights(10, 12))[0]
    later = of_case(farm.nights(13, 18))[0]
    assert later.finding_id == shift.finding_id


def test_taking_an_acceptance_back_brings_the_finding_back(farm: SmallFarm) -> None:
    told = farm.nights(10, 12)
    (shift,) = of_case(told)
    assert of_case(farm.night(12, decided(decide("accepted", told, [shift])))) == []
    (back,) = of_case(farm.night(12, decided(decide("new", told, [shift]))))
    assert back.finding_id == shift.finding_id
    assert alarm(back, TODAY) == "new"


def test_a_shift_of_one_phone_restarts_the_baseline_of_that_phone_alone(history: History) -> None:
    farm = SmallFarm(history, eight_percent_from(10, phones=["two"]))
    farm.nights(1, 9)
    told = farm.nights(10, 11)
    (alone,) = of_case(told)
    assert alone.device_id == "two"
    accepted = decided(decide("accepted", told, [alone]))
    farm.slower = lambda night, phone, case_id: (
        0.08 * ((phone == "two" and night >= 10) + (night >= 12)) if case_id == SLOW else 0.0
    )
    (of_soc,) = of_case(farm.night(12, accepted))
    assert of_soc.device_id == ""
    assert {p.device_id for p in of_soc.phones} == {"one", "three"}, "the other two have their old baselines"


def test_an_accepted_error_restarts_numerics_and_leaves_the_speed_alone(history: History) -> None:
    farm = SmallFarm(history, nmse={10: 5.0, 14: 40.0})
    farm.nights(1, 9)
    told = farm.nights(10, 11)
    (doubled,) = [f for f in of_case(told) if f.what == "nmse_doubled"]
    accepted = decided(decide("accepted", told, [doubled]))
    quiet = farm.nights(12, 13, accepted)
    assert of_case(quiet) == []
    assert verdict(quiet) == "same"
    worse = [f for f in of_case(farm.night(14, accepted)) if f.what == "nmse_doubled"]
    assert [f.triage for f in worse] == [None]


def test_what_was_fixed_is_quiet_in_the_run_that_showed_it_and_alerts_when_it_is_found_again(
    farm: SmallFarm,
) -> None:
    farm.slower = eight_percent_from(10, last=11)
    told = farm.night(11)
    word = decide("fixed", told, of_case(told), decided="2026-12-11T12:00:00+00:00")
    same_night = farm.night(11, decided(word, night=11))
    assert alerts(same_night, TODAY) == []
    assert same_night.counts["fixed"] == 1
    assert of_case(farm.night(12, decided(word, night=12))) == []
    farm.slower = eight_percent_from(13)
    (back,) = of_case(farm.night(13, decided(word, night=13)))
    assert alarm(back, TODAY) == "regressed again, marked fixed on 2026-12-11"
    assert back.triage is not None
    assert back.triage.told == alarm(back, TODAY)


def test_files_that_could_not_be_read_are_said_first(farm: SmallFarm) -> None:
    told = farm.night(10, Decided(unread=["triage/nightly/a.yaml:3: state: nonsense"]))
    assert told.not_measured == [
        "triage: triage/nightly/a.yaml:3: state: nonsense. Its decisions do not count in this run"
    ]
    assert len(alerts(told, TODAY)) == 1


def test_a_decision_about_what_is_not_found_any_more_says_nothing(farm: SmallFarm) -> None:
    told = farm.night(10)
    farm.slower = eight_percent_from(99)
    quiet = farm.night(11, decided(decide("acknowledged", told, of_case(told))))
    assert quiet.findings == []
    assert quiet.counts["acknowledged"] == 0


def test_another_socs_acceptance_is_not_ours(farm: SmallFarm) -> None:
    told = farm.nights(10, 11)
    (shift,) = of_case(told)
    assert shift.soc == SOC
    other = decided(decide("accepted", told, [replace(shift, soc="MT6989", finding_id="0" * 16)]))
    assert [f.finding_id for f in of_case(farm.night(11, other))] == [shift.finding_id]
