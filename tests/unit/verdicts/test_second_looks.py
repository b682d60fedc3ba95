"""An earlier night's second look: a finding is asked about once, and later nights say what was answered."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.confirmation import Confirmation, DuelAnswer
from orchestrator.domain.finding import Findings
from orchestrator.domain.results import RunResults
from orchestrator.history import trial_files
from orchestrator.history.history import SECOND, History
from orchestrator.verdicts.confirming import questions
from orchestrator.verdicts.judge import first_look, judge_run
from tests.results_fixture import passing, run_info
from tests.unit.verdicts.small_farm import SmallFarm
from tests.unit.verdicts.test_confirming import (
    MOVED,
    NIGHTS,
    SAMPLES,
    TONIGHT,
    Change,
    answered,
    asked,
    clocked,
    duel,
    night,
    nights,
    only,
    timed,
    tonight_ns,
)

TURNED = Change(0.1, "2")


@pytest.fixture
def history(tmp_path: Path) -> Generator[History]:
    """Eight nights without a change."""
    opened = History(f"sqlite:///{tmp_path}/tilefarm.db", tmp_path / "history")
    for number in range(1, NIGHTS):
        opened.store(night(number, Change(), 20))
    yield opened
    opened.close()


def later(history: History, change: Change, day: int) -> RunResults:
    """The night again, on a later day of December."""
    made = night(NIGHTS, change, SAMPLES)
    run_id = f"202612{day}T010000Z-smoke-aaaa"
    run = replace(run_info(run_id), started_at=f"2026-12-{day}T01:00:00+00:00")
    found = replace(made, run=run, trials=[replace(t, run_id=run_id) for t in made.trials])
    history.store(found)
    return found


def in_turns(history: History, answer: DuelAnswer = "different") -> Findings:
    tonight = nights(history, TURNED)
    found = asked(history, tonight)
    return judge_run(history, tonight, confirmation=answered(found, *(duel(w, answer) for w in found.wanted)))


def test_a_later_night_says_what_was_answered_and_when(history: History) -> None:
    first = only(in_turns(history).findings)
    assert (first.confirmed, first.confirmed_in) == ("yes", "")
    for day in (11, 12):  # the second one is told by the first
        again = later(history, TURNED, day)
        assert questions(first_look(history, again)).wanted == []
        finding = only(judge_run(history, again).findings)
        assert finding.finding_id == first.finding_id
        assert (finding.confirmed, finding.confirmed_in, finding.not_asked) == ("yes", TONIGHT, "")
        assert finding.duels == first.duels
        assert finding.detail.endswith("; confirmed on 10 Dec, in turns: +10.5 %")


def test_a_second_measurement_of_an_earlier_night_is_told_with_its_size(history: History) -> None:
    change = Change(0.1)
    tonight = nights(history, change)
    found = asked(history, tonight)
    again = [
        clocked(passing(MOVED, w.device_id, timed(tonight_ns(tonight, w.device_id), 20), run_id="other"))
        for w in found.wanted
    ]
    assert (
        only(
            judge_run(history, tonight, confirmation=replace(answered(found), again=again)).findings
        ).confirmed
        == "yes"
    )
    finding = only(judge_run(history, later(history, change, 11)).findings)
    assert (finding.confirmed, finding.confirmed_in, finding.duels) == ("yes", TONIGHT, [])
    assert "; confirmed on 10 Dec, measured again: +" in finding.detail


def test_what_gave_no_answer_is_not_asked_again_and_says_why(history: History) -> None:
    tonight = nights(history, TURNED)
    judge_run(history, tonight, confirmation=answered(asked(history, tonight), why="the phone went"))
    finding = only(judge_run(history, later(history, TURNED, 11)).findings)
    assert (finding.confirmed, finding.confirmed_in) == ("unknown", TONIGHT)
    assert finding.detail.endswith("; not confirmed on 10 Dec (the phone went)")


def test_a_finding_that_is_known_and_was_never_asked_says_since_when(history: History) -> None:
    judge_run(history, nights(history, TURNED))
    for day in (11, 12):
        finding = only(judge_run(history, later(history, TURNED, day)).findings)
        assert (finding.confirmed, finding.not_asked, finding.known_since) == ("not asked", "known", TONIGHT)


def test_an_answer_about_another_level_is_not_handed_on(history: History) -> None:
    """Its code is another one by now, and slower still: the codes in turns were others."""
    in_turns(history)
    finding = only(judge_run(history, later(history, Change(0.3, "3"), 11)).findings)
    assert (finding.confirmed, finding.not_asked, finding.known_since) == ("not asked", "known", TONIGHT)
    assert finding.duels == []


def test_what_came_back_is_asked_anew(history: History) -> None:
    """A night in between was as before: an earlier answer is of another finding."""
    in_turns(history)
    judge_run(history, later(history, Change(0.0, "2"), 11))
    back = later(history, TURNED, 12)
    assert questions(first_look(history, back)).wanted
    finding = only(judge_run(history, back).findings)
    assert (finding.confirmed, finding.confirmed_in, finding.not_asked) == ("not asked", "", "")


@pytest.mark.parametrize(("unpaid", "why"), [(1, "budget"), (0, "")])
def test_a_new_finding_that_was_not_asked_about_says_why(history: History, unpaid: int, why: str) -> None:
    tonight = nights(history, TURNED)
    finding = only(judge_run(history, tonight, confirmation=Confirmation(TONIGHT, unpaid=unpaid)).findings)
    assert (finding.confirmed, finding.not_asked) == ("not asked", why)


def test_numerics_are_not_measured_twice(history: History) -> None:
    found = SmallFarm(history, nmse={4: 9.0}).nights(1, 4)
    assert {(f.kind, f.not_asked) for f in found.findings} == {("numerics", "numerics")}


def test_only_nights_that_know_of_a_second_look_have_its_column(history: History) -> None:
    """Files of earlier versions have none, either."""
    in_turns(history)
    judge_run(history, later(history, Change(0.0, "2"), 11))
    stored = [run for run in history.runs() if run.verdicts]
    assert [SECOND in trial_files.names(history.verdict_path(run)) for run in stored] == [True, False]
