"""Since when, and why: nights that came to nothing are passed over, whatever their trials name."""

from dataclasses import replace

import pytest

from orchestrator.domain.case import Case
from orchestrator.domain.finding import Finding, Findings
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.history.history import History
from orchestrator.verdicts.judge import first_look, judge_run
from tests.results_fixture import case, info
from tests.unit.verdicts.small_farm import CASES, SLOW, SmallFarm, of_case, run_id

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


OLD_GLSLANG, NEW_GLSLANG = (
    "glslang 11:13.1.1 --target-env vulkan1.1",
    "glslang 11:14.3.0 --target-env vulkan1.1",
)
VULKAN = case(seq=64, tile="16x16", api="vulkan")


def made_by(results: RunResults, compiler: str, point: Case) -> RunResults:
    """``SLOW`` is case ``point`` here."""
    infos = {i: own for i, own in results.cases.items() if i != SLOW} | {point.case_id: info(point)}
    trials = [replace(t, case_id=point.case_id) if t.case_id == SLOW else t for t in results.trials]
    return replace(results, run=replace(results.run, compiler=compiler), cases=infos, trials=trials)


def compiled(farm: SmallFarm, point: Case, old: str, new: str) -> Findings:
    """Nine nights with one compiler, and the tenth with another."""
    for night in range(1, 10):
        found = made_by(farm.results(night), old, point)
        farm.history.store(found)
        judge_run(farm.history, found)
    found = made_by(farm.results(10), new, point)
    farm.history.store(found)
    return judge_run(farm.history, found)


def test_another_compiler_is_other_code(history: History) -> None:
    farm = slow_since(10, history)
    found = compiled(farm, VULKAN, OLD_GLSLANG, NEW_GLSLANG)
    (speed,) = of_case(found, VULKAN.case_id)
    assert (speed.cause, speed.since) == ("code", run_id(10))
    assert f"the SPIR-V compiler changed: {OLD_GLSLANG} → {NEW_GLSLANG}" in speed.detail
    assert [g.changed for g in found.groups] == ["compiler 11:14.3.0"]


def test_other_bits_from_another_compiler_are_other_bits_from_other_code(history: History) -> None:
    found = compiled(SmallFarm(history, nmse={10: 1.1}), VULKAN, OLD_GLSLANG, NEW_GLSLANG)
    assert [(f.what, f.cause) for f in of_case(found, VULKAN.case_id)] == [("hash_changed", "code")]


@pytest.mark.parametrize(
    ("point", "compilers"),
    [
        pytest.param(CASES[0], (OLD_GLSLANG, NEW_GLSLANG), id="no SPIR-V"),
        pytest.param(VULKAN, ("", NEW_GLSLANG), id="not known before"),
        pytest.param(VULKAN, (OLD_GLSLANG, OLD_GLSLANG), id="the same"),
    ],
)
def test_what_no_other_compiler_made_is_the_same_code(
    history: History, point: Case, compilers: tuple[str, str]
) -> None:
    (speed,) = of_case(compiled(slow_since(10, history), point, *compilers), point.case_id)
    assert speed.cause == "environment"
