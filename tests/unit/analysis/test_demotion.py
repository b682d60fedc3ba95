"""Field case G1-13, as outcomes: less than asked is a failure, more is information."""

from dataclasses import replace
from typing import Literal

import pytest

from orchestrator.analysis.demotion import asked_and_got
from orchestrator.analysis.outcome import JudgedTrial, Outcome, judge
from orchestrator.analysis.summary import summarise
from orchestrator.domain.expectation import Expectation
from orchestrator.domain.precision import Asked, Precision
from orchestrator.domain.results import RunResults
from orchestrator.domain.verdict import Verdict
from tests.probes_fixture import precision, precision_case, probe_info, probed
from tests.results_fixture import TODAY, expectation, results


def _run(found: Precision, verdict: Verdict = Verdict.PASS, known: Expectation | None = None) -> RunResults:
    point = precision_case(found.api, found.asked)
    run = results(
        trials=[probed(point, found.device_id, verdict=verdict, reason="r" if verdict != "pass" else "")],
        infos=[probe_info(point)],
        expectations=[known] if known else [],
    )
    return replace(run, precision=[found])


def _judged(run: RunResults) -> JudgedTrial:
    return judge(run, TODAY).trials[0]


def test_g1_13_asked_fp32_got_fp16_is_a_failure() -> None:
    """G1-13: the probe itself ran, so its verdict alone would be green."""
    run = _run(precision("local-1", "highp", delivered="fp16", demoted=True))
    item = _judged(run)
    assert item.outcome is Outcome.FAILURE
    assert item.trial.verdict is Verdict.MISMATCH
    assert item.trial.reason == "asked fp32 (highp), got fp16: 10 mantissa bits, largest finite 65504"
    summary = summarise(run, [item], None, None)
    assert summary.exit_code == 1
    assert summary.sentence.startswith("1 unexpected failure (1 mismatch of a probe).")


def test_g1_13_asked_mediump_got_fp32_is_information() -> None:
    """G1-13: more than was asked for is no failure."""
    found = precision("local-1", "mediump")
    assert asked_and_got(found) == "asked mediump, got fp32"
    assert _judged(_run(found)).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("asked", "delivered", "words"),
    [
        ("precise", "fp16", "asked fp32 (precise), got fp16"),
        ("fp16", "fp32", "asked fp16, got fp32"),
    ],
)
def test_asked_and_got(asked: Asked, delivered: Literal["fp32", "fp16"], words: str) -> None:
    assert asked_and_got(precision("d", asked, delivered=delivered)) == words


def test_an_ignored_no_contraction_says_what_came() -> None:
    fused = replace(precision("local-1", "precise", "vulkan", demoted=True), contraction="fused")
    assert "NoContraction is ignored" in _judged(_run(fused)).trial.reason


def test_a_demotion_can_be_a_known_failure_and_joins_the_probes_own_reason() -> None:
    found = precision("local-1", "highp", delivered="fp16", demoted=True)
    known = expectation("precision_probe and asked=highp")
    assert _judged(_run(found, known=known)).outcome is Outcome.EXPECTED_FAILURE
    assert _judged(_run(found, Verdict.MISMATCH)).trial.reason.endswith("largest finite 65504; r")


@pytest.mark.parametrize("verdict", [Verdict.CRASHED, Verdict.INFRA])
def test_other_verdicts_stay(verdict: Verdict) -> None:
    found = precision("local-1", "highp", delivered="fp16", demoted=True)
    assert _judged(_run(found, verdict)).trial.verdict is verdict


def test_another_device_or_api_is_not_blamed() -> None:
    found = precision("local-1", "highp", delivered="fp16", demoted=True)
    run = replace(_run(found), precision=[replace(found, api="vulkan"), replace(found, device_id="b")])
    assert _judged(run).outcome is Outcome.PASSED
