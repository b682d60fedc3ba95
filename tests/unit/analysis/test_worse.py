"""What `--fail-on regressed` fails on, and the exit codes of the three answers."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from orchestrator.analysis.outcome import judge
from orchestrator.analysis.summary import Summary, summarise
from orchestrator.analysis.worse import Worse, worse
from orchestrator.domain.finding import Finding, Findings, Group, Triage
from orchestrator.domain.gate import FailOn
from orchestrator.domain.results import Missing, RunResults
from orchestrator.domain.verdict import Verdict
from tests.results_fixture import TODAY, case, passing, results, run_info, trial

SLOWER = Finding("f1", "speed", "regressed", "SM8650", "c1", cause="code", effect=0.05)
POINT = case()
GOOD = results(trials=[passing(POINT, "local-1")], points=[POINT])
BAD = results(trials=[trial(POINT, "local-1", Verdict.MISMATCH)], points=[POINT])
LOST = replace(GOOD, missing=[Missing("phone", "", "offline")])


def found(*items: Finding, groups: Sequence[Group] = ()) -> Findings:
    return Findings("run", "nightly", ["run"], "Words.", {}, findings=list(items), groups=list(groups))


def exit_code(run: RunResults, gate: FailOn | None, against: Worse | None = None, **more: bool) -> Summary:
    return summarise(run, judge(run, TODAY).trials, None, None, fail_on=gate, against=against, **more)


@pytest.mark.parametrize(
    ("finding", "counts"),
    [
        (SLOWER, True),
        (replace(SLOWER, what="improved", effect=-0.05), False),
        (replace(SLOWER, device_id="phone-1"), False),
        (replace(SLOWER, confirmed="no"), False),
        (replace(SLOWER, confirmed="unknown"), True),
        (replace(SLOWER, triage=Triage("acknowledged")), False),
        (replace(SLOWER, triage=Triage("acknowledged", expires="2026-11-30")), True),
        (replace(SLOWER, kind="numerics", what="nmse_doubled"), True),
        (replace(SLOWER, kind="numerics", what="nondeterministic"), True),
        (replace(SLOWER, kind="numerics", what="limit_crossed", device_id="phone-1"), False),
        (replace(SLOWER, kind="numerics", what="hash_changed", cause="code"), False),
        (replace(SLOWER, kind="numerics", what="hash_changed", cause="driver"), True),
    ],
)
def test_what_counts(finding: Finding, counts: bool) -> None:
    assert bool(worse(found(finding), TODAY)) is counts


def test_words_count_variants_not_flags() -> None:
    flags = [
        replace(SLOWER, finding_id=w, kind="numerics", what=w) for w in ("nmse_doubled", "limit_crossed")
    ]
    said = worse(found(SLOWER, *flags), TODAY).words
    assert said == ("1 alert of speed against the history", "1 alert of numerics")
    assert worse(None, TODAY).words == ()


AGAINST = worse(found(SLOWER), TODAY)


@pytest.mark.parametrize(
    ("run", "against", "wrong", "regressed", "never"),
    [
        (GOOD, None, 0, 0, 0),
        (GOOD, AGAINST, 0, 1, 0),
        (BAD, None, 1, 1, 0),
        (BAD, AGAINST, 1, 1, 0),
        (LOST, None, 3, 3, 3),
        (LOST, AGAINST, 3, 1, 3),
    ],
)
def test_exit_codes(run: RunResults, against: Worse | None, wrong: int, regressed: int, never: int) -> None:
    codes = [exit_code(run, gate, against).exit_code for gate in ("wrong", "regressed", "never")]
    assert codes == [wrong, regressed, never]
    assert exit_code(run, None, against).exit_code == wrong
    started = replace(run, run=replace(run_info(), fail_on="regressed"))
    assert exit_code(started, None, against).exit_code == regressed
    assert exit_code(started, "never", against).exit_code == never


@pytest.mark.parametrize("gate", ["wrong", "regressed", "never"])
def test_the_sentence_never_claims_calm_beside_a_regression(gate: FailOn) -> None:
    summary = exit_code(GOOD, gate, AGAINST)
    assert summary.sentence == "1 alert of speed against the history. 1 of 1 measured trials passed."
    assert summary.bad
    assert exit_code(BAD, gate).bad


def test_a_history_that_cannot_be_asked_is_no_pass() -> None:
    assert exit_code(GOOD, "wrong", judged=False).exit_code == 0
    summary = exit_code(GOOD, "regressed", judged=False)
    assert summary.exit_code == 3
    assert summary.sentence.startswith("The history could not say what regressed. ")
    assert exit_code(BAD, "regressed", judged=False).exit_code == 1
