from dataclasses import replace
from datetime import date, timedelta

import pytest

from orchestrator.analysis.outcome import Outcome, judge
from orchestrator.domain.errors import UsageError, WireError
from orchestrator.domain.expectation import Expectation
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from tests.results_fixture import (
    TODAY,
    case,
    device,
    elements,
    expectation,
    numerics,
    passing,
    results,
    trial,
)

POINT = case(tile="16x16")
OTHER = case("attention_naive", tile="16x16")


def _run(verdict: Verdict, *known: Expectation, **changes: str) -> RunResults:
    made = trial(POINT, "local-1", verdict, reason="r")
    return results(trials=[replace(made, **changes)], points=[POINT], expectations=known)


def _outcome(run: RunResults, today: date = TODAY) -> Outcome:
    return judge(run, today).trials[0].outcome


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [
        (Verdict.PASS, Outcome.PASSED),
        (Verdict.MISMATCH, Outcome.FAILURE),
        (Verdict.NONDETERMINISTIC, Outcome.FAILURE),
        (Verdict.COMPILE_FAILED, Outcome.FAILURE),
        (Verdict.CRASHED, Outcome.FAILURE),
        (Verdict.HUNG, Outcome.FAILURE),
        (Verdict.UNSUPPORTED, Outcome.UNSUPPORTED),
        (Verdict.INVALID, Outcome.UNSUPPORTED),
        (Verdict.INFRA, Outcome.INFRA),
    ],
)
def test_every_verdict_without_expectations(verdict: Verdict, outcome: Outcome) -> None:
    assert _outcome(_run(verdict)) is outcome


def test_expected_failure_names_reason_owner_and_end() -> None:
    item = judge(_run(Verdict.MISMATCH, expectation()), TODAY).trials[0]
    assert item.outcome is Outcome.EXPECTED_FAILURE
    assert item.note == (
        "llvmpipe ends a loop nest silently after 65,535 iterations (owner kernels, until 2027-03-01)"
    )


def test_unexpected_pass_is_not_a_plain_pass() -> None:
    item = judge(_run(Verdict.PASS, expectation()), TODAY).trials[0]
    assert item.outcome is Outcome.UNEXPECTEDLY_PASSED
    assert "matrix.yaml:41" in item.note


def test_another_verdict_than_the_expected_one_is_a_failure() -> None:
    item = judge(_run(Verdict.CRASHED, expectation()), TODAY).trials[0]
    assert item.outcome is Outcome.FAILURE
    assert item.note == "a known failure expects mismatch here, not crashed"


def test_an_expectation_never_hides_infrastructure_or_refusals() -> None:
    assert _outcome(_run(Verdict.INFRA, expectation(verdict=Verdict.INFRA))) is Outcome.INFRA
    refused = _run(Verdict.UNSUPPORTED, expectation(verdict=Verdict.UNSUPPORTED))
    assert _outcome(refused) is Outcome.UNSUPPORTED


def test_expectation_applies_on_its_last_day_and_no_longer() -> None:
    run = _run(Verdict.MISMATCH, expectation(expires=TODAY))
    assert _outcome(run, TODAY) is Outcome.EXPECTED_FAILURE
    item = judge(run, TODAY + timedelta(days=1)).trials[0]
    assert item.outcome is Outcome.FAILURE
    assert item.note.startswith("known failure expired on 2026-12-01 (owner kernels, matrix.yaml:41)")
    assert _outcome(_run(Verdict.PASS, expectation(expires=TODAY)), date(2027, 1, 1)) is Outcome.PASSED


def test_expectation_is_bound_to_selection_soc_and_driver() -> None:
    assert _outcome(_run(Verdict.MISMATCH, expectation("attention_naive"))) is Outcome.FAILURE
    assert _outcome(_run(Verdict.MISMATCH, replace(expectation(), soc="SM*"))) is Outcome.FAILURE
    assert _outcome(_run(Verdict.MISMATCH, replace(expectation(), driver="*Mesa 23*"))) is Outcome.FAILURE


def test_driver_of_a_trial_that_died_early_is_the_probed_one() -> None:
    assert _outcome(_run(Verdict.CRASHED, expectation(verdict=Verdict.CRASHED), driver="")) is (
        Outcome.EXPECTED_FAILURE
    )


def test_a_contradicted_comparison_is_never_a_pass() -> None:
    item = judge(_run(Verdict.PASS, recheck="disagreed"), TODAY).trials[0]
    assert item.outcome is Outcome.FAILURE
    assert "disagrees" in item.note


def test_uses_count_matches_and_name_what_matched_nothing() -> None:
    trials: list[Trial] = [trial(POINT, "local-1", Verdict.MISMATCH), passing(OTHER, "local-1")]
    run = results(
        trials=trials,
        points=[POINT, OTHER],
        expectations=[
            expectation("op=attention"),
            expectation("seq=4096"),
            expectation(expires=date(2026, 1, 1)),
        ],
    )
    uses = judge(run, TODAY).uses
    assert [(u.matched, u.expired) for u in uses] == [(2, False), (0, False), (1, True)]


def test_predicate_can_be_given() -> None:
    run = _run(Verdict.MISMATCH, expectation("no such language ((("))
    judged = judge(run, TODAY, compile_when=lambda text: lambda point: text != "" and point == POINT)
    assert judged.trials[0].outcome is Outcome.EXPECTED_FAILURE


def test_a_broken_expression_names_its_source() -> None:
    with pytest.raises(UsageError, match=r"results\.json: expectations"):
        judge(_run(Verdict.PASS, expectation("((")), TODAY)


@pytest.mark.parametrize("unknown", ["device", "case"])
def test_trials_without_description_are_refused(unknown: str) -> None:
    run = _run(Verdict.PASS)
    run = replace(run, devices=[device("other")]) if unknown == "device" else replace(run, cases={})
    with pytest.raises(WireError, match=f"{unknown} .* is not described there"):
        judge(run, TODAY)


FLAKE = replace(expectation(verdict=Verdict.NONDETERMINISTIC), kind="flakes", replays=59, nights=14)


def _replayed(executions: int, *known: Expectation) -> RunResults:
    made = numerics(elements(POINT))
    output = replace(made, hashes={made.hash: executions})
    return results(
        trials=[trial(POINT, "local-1", Verdict.PASS, outputs=[output])], points=[POINT], expectations=known
    )


def test_a_known_flake_that_shows_is_expected() -> None:
    assert _outcome(_run(Verdict.NONDETERMINISTIC, FLAKE)) is Outcome.EXPECTED_FAILURE


@pytest.mark.parametrize(
    ("executions", "outcome"), [(0, Outcome.PASSED), (58, Outcome.PASSED), (59, Outcome.UNEXPECTEDLY_PASSED)]
)
def test_a_known_flake_that_passes_is_news_after_enough_executions(executions: int, outcome: Outcome) -> None:
    item = judge(_replayed(executions, FLAKE), TODAY).trials[0]
    assert item.outcome is outcome
    assert f"in {executions} executions" in item.note
    assert "matrix.yaml:41" in item.note


def test_a_known_flake_expects_no_other_failure() -> None:
    item = judge(_run(Verdict.MISMATCH, FLAKE), TODAY).trials[0]
    assert item.outcome is Outcome.FAILURE
    assert item.note == "a known flake expects nondeterministic here, not mismatch"


def test_a_known_slowness_says_nothing_of_a_trial_and_is_matched_all_the_same() -> None:
    slow = replace(expectation(verdict=Verdict.PASS), kind="slow", slower=1.1)
    for verdict, outcome in ((Verdict.PASS, Outcome.PASSED), (Verdict.MISMATCH, Outcome.FAILURE)):
        found = judge(_run(verdict, slow), TODAY)
        assert found.trials[0].outcome is outcome
        assert found.uses[0].matched == 1
