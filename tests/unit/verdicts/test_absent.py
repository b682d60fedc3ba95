"""What is said of series that tell nothing tonight: missing ones, retired ones, and those of a new phone."""

from dataclasses import replace

import pytest

from orchestrator.domain.finding import Findings
from orchestrator.domain.results import Pruned, RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.history.history import History
from orchestrator.verdicts.judge import judge_run
from tests.results_fixture import device
from tests.unit.verdicts.small_farm import PHONES, SLOW, SOC, SmallFarm


def tonight(farm: SmallFarm, found: RunResults) -> Findings:
    farm.nights(1, 9)
    farm.history.store(found)
    return judge_run(farm.history, found)


def with_a_phone_more(found: RunResults, soc: str) -> RunResults:
    own = [replace(t, device_id="four") for t in found.trials if t.device_id == "one"]
    return replace(found, devices=[*found.devices, device("four", soc=soc)], trials=[*found.trials, *own])


def dead(trial: Trial, verdict: Verdict) -> Trial:
    return replace(trial, verdict=verdict, reason="SIGSEGV", timing=None, outputs=[])


@pytest.mark.parametrize(
    ("infra", "why"),
    [
        ((), "not measured tonight: crashed on 3 phones"),
        (("two",), "not measured tonight: crashed on 2 phones, infra on 1 phone"),
    ],
)
def test_a_missing_case_says_what_became_of_it(history: History, infra: tuple[str, ...], why: str) -> None:
    farm = SmallFarm(history)
    found = farm.results(10)
    trials = [
        t if t.case_id != SLOW else dead(t, Verdict.INFRA if t.device_id in infra else Verdict.CRASHED)
        for t in found.trials
    ]
    (row,) = [r for r in tonight(farm, replace(found, trials=trials)).series if r.case_id == SLOW]
    assert (row.verdict, row.why) == ("missing", why)


def test_what_was_pruned_tonight_is_not_missing(history: History) -> None:
    farm = SmallFarm(history)
    found = farm.results(10)
    left = [t for t in found.trials if t.case_id != SLOW]
    pruned = [Pruned(phone, SLOW, Verdict.UNSUPPORTED, ["shared_bytes 36864 > 16384"]) for phone in PHONES]
    findings = tonight(farm, replace(found, trials=left, pruned=pruned))
    assert findings.counts["missing"] == 0
    assert SLOW not in {row.case_id for row in findings.series}


@pytest.mark.parametrize(("last", "told"), [(9, True), (22, True), (23, False)])
def test_a_retired_soc_is_missing_as_long_as_the_night_says_why(
    history: History, last: int, told: bool
) -> None:
    farm = SmallFarm(history)
    for night in range(1, last + 1):
        found = farm.results(night)
        history.store(with_a_phone_more(found, "OLD1") if night < 9 else found)
    findings = judge_run(history, farm.results(last))
    assert (findings.counts["missing"] > 0, bool(findings.not_measured)) == (told, told)


@pytest.mark.parametrize(
    ("soc", "sentence"),
    [
        (SOC, "Nothing changed; 10 of 10 cases the same"),
        ("NEW1", "10 new; 10 of 20 cases the same"),
    ],
)
def test_a_new_phone_says_that_it_cannot_tell_yet(history: History, soc: str, sentence: str) -> None:
    farm = SmallFarm(history)
    farm.nights(1, 9)
    for night in range(10, 18):
        found = with_a_phone_more(farm.results(night), soc)
        history.store(found)
        findings = judge_run(history, found)
        said = f"four: first seen 10 Dec; no verdict on its speed before 7 nights, {night - 10} so far"
        assert findings.not_measured == ([said] if night < 17 else [])
        if night == 10:
            assert findings.sentence == sentence


def test_a_new_farm_has_no_new_phones(history: History) -> None:
    assert SmallFarm(history).nights(1, 2).not_measured == []
