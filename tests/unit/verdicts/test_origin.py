"""Since when, and why: nights that came to nothing are passed over, whatever their trials name."""

from dataclasses import replace

import pytest

from orchestrator.domain.finding import Finding, Findings
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.history.history import History
from orchestrator.verdicts.judge import first_look, judge_run
from tests.unit.verdicts.small_farm import SLOW, SmallFarm, of_case, run_id

NEW = "c" * 64
BLANK = ""
"""Of a trial that was refused before its shader was rendered."""


def with_code(trial: Trial, code_hash: str | None) -> Trial:
    """Of ``SLOW``; None: as it always was."""
    changes = trial.case_id == SLOW and code_hash is not None
    return replace(trial, code_hash=code_hash) if changes and code_hash is not None else trial


def came_to_nothing(trial: Trial, code_hash: str | None) -> Trial:
    if trial.case_id != SLOW:
        return trial
    ended = replace(
        trial, verdict=Verdict.INFRA, reason="adb: device offline", timing=None, outputs=[], driver=""
    )
    return with_code(ended, code_hash)


def told(farm: SmallFarm, empty: int, meanwhile: str | None, then: str | None) -> Findings:
    """The night after night ``empty``, whose trials of ``SLOW`` came to nothing.

    Args:
        meanwhile: the code that those name.
        then: the code of the night after.
    """
    farm.nights(1, empty - 1)
    night = farm.results(empty)
    night = replace(night, trials=[came_to_nothing(t, meanwhile) for t in night.trials])
    farm.history.store(night)
    judge_run(farm.history, night)
    last = farm.results(empty + 1)
    last = replace(last, trials=[with_code(t, then) for t in last.trials])
    farm.history.store(last)
    return judge_run(farm.history, last)


def slow_since(night: int, history: History) -> SmallFarm:
    return SmallFarm(history, lambda n, _, case: 0.08 if n >= night and case == SLOW else 0.0)


def only(findings: Findings, what: str) -> Finding:
    (found,) = [f for f in of_case(findings) if f.what == what]
    return found


CHANGES = pytest.mark.parametrize(
    ("meanwhile", "then", "cause"),
    [
        pytest.param(NEW, NEW, "code", id="code came in that night"),
        pytest.param(BLANK, None, "environment", id="refused before it was rendered"),
        pytest.param(NEW, None, "environment", id="tried and taken back"),
        pytest.param(BLANK, NEW, "code", id="code came after it"),
    ],
)


@CHANGES
def test_what_slowed_a_case_is_held_against_its_last_number(
    history: History, meanwhile: str | None, then: str | None, cause: str
) -> None:
    found = only(told(slow_since(12, history), 11, meanwhile, then), "regressed")
    assert (found.cause, found.since) == (cause, run_id(12))


@CHANGES
@pytest.mark.parametrize("what", ["hash_changed", "nmse_doubled"])
def test_what_changed_an_output_is_held_against_the_last_output(
    history: History, meanwhile: str | None, then: str | None, cause: str, what: str
) -> None:
    """Night 5 has no NMSE, which is neither small nor large."""
    found = only(told(SmallFarm(history, nmse={6: 9.0}), 5, meanwhile, then), what)
    assert (found.cause, found.since) == (cause, run_id(6))


def test_a_night_without_a_number_ends_no_row_of_slow_ones(history: History) -> None:
    """Nights 11 and 13 are slow, night 12 came to nothing: since night 11."""
    farm = slow_since(11, history)
    found = only(told(farm, 12, BLANK, None), "regressed")
    assert (found.cause, found.since) == ("environment", run_id(11))


def test_a_phone_without_a_number_tonight_runs_no_other_code(history: History) -> None:
    """One phone was refused with an empty hash: the case is no suspect on all the others."""
    farm = SmallFarm(history)
    farm.nights(1, 9)
    night = farm.results(10)
    night = replace(
        night, trials=[came_to_nothing(t, BLANK) if t.device_id == "three" else t for t in night.trials]
    )
    history.store(night)
    judged = first_look(history, night)
    assert not judged.matrix.code_changed.any()
