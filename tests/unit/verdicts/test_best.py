"""Which variants may be shipped, by what their nights were: a small farm with two phones of one SoC."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date

import pytest

from orchestrator.analysis.best.table import tuning_table
from orchestrator.domain.best import Best, Chosen, WorkloadBest
from orchestrator.domain.case import Case
from orchestrator.domain.errors import UsageError
from orchestrator.domain.expectation import Expectation
from orchestrator.domain.results import Pruned, RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.history.history import History
from orchestrator.verdicts.best import Wanted, best_variants
from tests.results_fixture import (
    case,
    code_hash,
    device,
    elements,
    info,
    numerics,
    passing,
    results,
    run_info,
    timing,
)

FAST, MIDDLE, SLOW = case(tile="32x16"), case(tile="64x16"), case(precision="fp16_storage", tile="16x16")
NS = {FAST.case_id: 1_000_000, MIDDLE.case_id: 1_100_000, SLOW.case_id: 2_000_000}
PHONES = {"one": 1.0, "two": 1.3}
Change = Callable[[int, Trial], Trial | None]


def run_id(night: int) -> str:
    return f"202612{night:02d}T010000Z-nightly-aaaa"


def same(_night: int, trial: Trial) -> Trial | None:
    return trial


def night(number: int, change: Change = same, cases: Sequence[Case] = (FAST, MIDDLE, SLOW)) -> RunResults:
    """Times differ by phone, night and variant; a little noise that no two nights share."""
    trials: list[Trial] = []
    for at, (phone, factor) in enumerate(PHONES.items()):
        for index, point in enumerate(cases):
            wobble = 1 + 0.002 * ((number * (3 + index) + at) % 5 - 2)
            ns = round(NS.get(point.case_id, 900_000) * factor * (1 + 0.02 * (number % 3)) * wobble)
            made = passing(
                point, phone, timing(ns, spread=0.001, n=20, gpu_timer="trusted"), run_id=run_id(number)
            )
            if (changed := change(number, made)) is not None:
                trials.append(changed)
    return results(
        run=replace(
            run_info(run_id(number), suite="nightly"), started_at=f"2026-12-{number:02d}T01:00:00+00:00"
        ),
        devices=[device(phone, soc="SM8650") for phone in PHONES],
        infos=[info(c) for c in cases],
        trials=trials,
    )


def told(
    history: History,
    nights: int = 8,
    change: Change = same,
    last: Callable[[RunResults], RunResults] = lambda r: r,
    cases: Sequence[Case] = (FAST, MIDDLE, SLOW),
    wanted: Wanted | None = None,
) -> Best:
    found = last(night(1, change, cases))
    history.store(found)
    for number in range(2, nights + 1):
        found = last(night(number, change, cases))
        history.store(found)
    return best_variants(history, "nightly", found.run.run_id, found, wanted)


def only(best: Best) -> WorkloadBest:
    ((workload,),) = [soc.workloads for soc in best.socs]
    return workload


def ids(workload: WorkloadBest) -> list[str]:
    return [v.case_id for v in workload.variants]


def left(workload: WorkloadBest) -> dict[str, str]:
    return {out.case_id: out.why for out in workload.left_out}


def failing(verdict: Verdict, reason: str = "o: 3 elements off") -> Change:
    """The fastest variant fails once: in night 2 on phone two."""

    def change(number: int, trial: Trial) -> Trial | None:
        if (number, trial.device_id, trial.case_id) != (2, "two", FAST.case_id):
            return trial
        return replace(trial, verdict=verdict, reason=reason)

    return change


def test_the_fastest_is_shipped_with_its_margin_and_how_steady_it_is(history: History) -> None:
    workload = only(told(history))
    assert ids(workload) == [FAST.case_id, MIDDLE.case_id, SLOW.case_id]
    pick = workload.picks[0]
    assert (pick.api, pick.case_id, pick.tied) == ("any", FAST.case_id, [])
    assert pick.runner_up is not None
    assert pick.runner_up.case_id == MIDDLE.case_id
    assert pick.runner_up.log_ratio == pytest.approx(0.0953, abs=0.005)
    assert 0.08 < pick.runner_up.low < pick.runner_up.log_ratio < pick.runner_up.high < 0.11
    assert (pick.won, pick.near, pick.pairs, pick.nights) == (16, 16, 16, 8)
    assert pick.warnings == ["its phones do not show their GPU clock: times are 20th percentiles"]
    assert [p.api for p in workload.picks] == ["any", "gles"], "nothing runs through Vulkan here"
    assert workload.variants[0].latency_ns == pytest.approx(1_000_000 * 1.3**0.5 * 1.02, rel=0.03)


@pytest.mark.parametrize(
    "verdict",
    [Verdict.MISMATCH, Verdict.NONDETERMINISTIC, Verdict.CRASHED, Verdict.HUNG, Verdict.COMPILE_FAILED,
     Verdict.UNSUPPORTED],
)  # fmt: skip
def test_a_variant_that_failed_once_on_one_phone_is_never_shipped(history: History, verdict: Verdict) -> None:
    workload = only(told(history, change=failing(verdict)))
    assert FAST.case_id not in ids(workload)
    why = left(workload)[FAST.case_id]
    assert why == f"{verdict} on two in the night of 2026-12-02, 1 in all: o: 3 elements off"
    assert workload.picks[0].case_id == MIDDLE.case_id


def test_infrastructure_says_nothing_against_a_variant(history: History) -> None:
    workload = only(told(history, change=failing(Verdict.INFRA, "adb: gone")))
    assert workload.picks[0].case_id == FAST.case_id
    assert workload.picks[0].pairs == 15


def test_code_that_was_wrong_and_is_another_one_now_may_be_shipped(history: History) -> None:
    def change(number: int, trial: Trial) -> Trial | None:
        if trial.case_id != FAST.case_id:
            return trial
        if number <= 3:
            return replace(trial, verdict=Verdict.MISMATCH, reason="wrong")
        return replace(trial, code_hash=code_hash(FAST, "2"))

    pick = only(told(history, change=change)).picks[0]
    assert (pick.case_id, pick.nights) == (FAST.case_id, 5)
    assert "rests on 5 nights, and 7 are needed" in pick.warnings


def test_what_got_slower_counts_as_it_is_now(history: History) -> None:
    """By its new code: that no person accepted the change yet makes it no faster."""

    def change(number: int, trial: Trial) -> Trial | None:
        if trial.case_id != FAST.case_id or number < 7:
            return trial
        assert trial.timing is not None
        slower = replace(trial.timing, gpu_ns=[round(1.3 * t) for t in trial.timing.gpu_ns])
        return replace(trial, timing=slower, code_hash=code_hash(FAST, "2"))

    workload = only(told(history, change=change))
    assert ids(workload)[0] == MIDDLE.case_id
    assert workload.picks[0].case_id == MIDDLE.case_id


def test_nights_with_an_older_driver_do_not_count(history: History) -> None:
    def change(number: int, trial: Trial) -> Trial | None:
        return replace(trial, driver="Adreno V@744") if number >= 6 and trial.device_id == "two" else trial

    best = told(history, change=change)
    pick = only(best).picks[0]
    assert {p.device_id: p.nights for p in pick.phones} == {"one": 8, "two": 3}
    assert {p.device_id: len(p.runs) for p in best.socs[0].phones} == {"one": 8, "two": 3}
    warned = best.socs[0].driver_warnings["gles"]
    assert warned[0].startswith("the gles driver of two changed on 2026-12-06: only nights with ")
    assert warned[1].startswith("its phones have 2 different drivers of gles: ")


def test_a_driver_of_one_api_is_no_matter_of_the_other_one(history: History) -> None:
    through_vulkan = case(tile="32x16", api="vulkan")

    def change(number: int, trial: Trial) -> Trial | None:
        newer = number >= 6 and trial.case_id == FAST.case_id
        return replace(trial, driver="Adreno V@744") if newer else trial

    best = told(history, change=change, cases=(FAST, through_vulkan))
    (soc,) = best.socs
    assert list(soc.driver_warnings) == ["gles"]
    assert [len(p.runs) for p in soc.phones] == [8, 8], "all nights count for Vulkan"
    warned = {
        e.api: [w for w in e.warnings if "driver" in w]
        for e in tuning_table(best, "tilefarm export").entries
        if e.match == "soc"
    }
    assert warned["vulkan"] == []
    (said,) = warned["gles"]
    assert said.startswith("the gles driver of phone 1, phone 2 changed on 2026-12-06: ")


def test_a_failure_of_the_same_code_under_an_older_driver_still_counts(history: History) -> None:
    wrong = failing(Verdict.CRASHED)

    def change(number: int, trial: Trial) -> Trial | None:
        made = wrong(number, trial)
        return replace(made, driver="Adreno V@744") if made is not None and number >= 6 else made

    assert FAST.case_id in left(only(told(history, change=change)))


def test_one_phone_one_night_and_a_wall_clock_are_said(history: History) -> None:
    def change(_number: int, trial: Trial) -> Trial | None:
        if trial.device_id == "two" or trial.timing is None:
            return None
        return replace(trial, timing=replace(trial.timing, gpu_timer="disagrees"))

    pick = only(told(history, 1, change)).picks[0]
    assert pick.warnings == [
        "rests on one phone, one",
        "rests on one night, and 7 are needed",
        "the margin has no interval: no phone has two nights of both",
        "timed by the wall clock",
        "its phones do not show their GPU clock: times are 20th percentiles",
    ]


def test_a_phone_on_which_another_one_is_faster_is_named(history: History) -> None:
    def change(_number: int, trial: Trial) -> Trial | None:
        if (trial.device_id, trial.case_id) != ("two", FAST.case_id) or trial.timing is None:
            return trial
        return replace(
            trial, timing=replace(trial.timing, gpu_ns=[round(1.15 * t) for t in trial.timing.gpu_ns])
        )

    pick = only(told(history, change=change)).picks[0]
    assert pick.case_id == FAST.case_id
    assert pick.warnings[-1].startswith("on two another variant is 4.")
    assert pick.worst_phone is not None
    assert pick.worst_phone.device_id == "two"
    assert pick.won == 8


def test_a_variant_that_is_measured_no_more_is_left_out(history: History) -> None:
    def change(number: int, trial: Trial) -> Trial | None:
        return None if trial.case_id == FAST.case_id and number == 8 else trial

    assert left(only(told(history, change=change))) == {
        FAST.case_id: "not measured in the SoC's newest night"
    }


def test_named_inputs_and_probes_are_no_workloads(history: History) -> None:
    named = case(inputs="n1_logit_151", tile="32x16")
    assert only(told(history, cases=(FAST, MIDDLE, named))).op == "attention"


def test_what_results_say_against_a_variant_counts(history: History) -> None:
    def last(found: RunResults) -> RunResults:
        known = Expectation(
            "tile=32x16", Verdict.MISMATCH, "SM*", "*", "wrong on paper", "me", date(2026, 12, 31)
        )
        dropped = Pruned("two", SLOW.case_id, Verdict.UNSUPPORTED, ["shared_bytes 36864 > 16384"])
        trials = [replace(t, recheck="disagreed") if t.case_id == MIDDLE.case_id else t for t in found.trials]
        return replace(found, expectations=[known], pruned=[dropped], trials=trials)

    workload = only(told(history, last=last))
    assert workload.picks == []
    assert left(workload) == {
        FAST.case_id: "expected to fail (mismatch): wrong on paper",
        MIDDLE.case_id: "the host compared its tensor of one again and disagrees",
        SLOW.case_id: "two cannot run it: shared_bytes 36864 > 16384",
    }


def test_an_expired_expectation_counts_no_more(history: History) -> None:
    def last(found: RunResults) -> RunResults:
        old = Expectation("tile=32x16", Verdict.MISMATCH, "*", "*", "was wrong", "me", date(2026, 12, 7))
        return replace(found, expectations=[old])

    assert only(told(history, last=last)).picks[0].case_id == FAST.case_id


def test_a_known_slowness_speaks_against_no_variant(history: History) -> None:
    def last(found: RunResults) -> RunResults:
        slow = Expectation(
            "tile=32x16", Verdict.PASS, "*", "*", "spills", "me", date(2026, 12, 31), kind="slow", slower=1.1
        )
        return replace(found, expectations=[slow])

    assert only(told(history, last=last)).picks[0].case_id == FAST.case_id


def test_results_that_are_gone_are_said(history: History) -> None:
    told(history, 7)
    best = best_variants(history, "nightly", run_id(7), None)
    assert best.socs[0].warnings == [
        "results.json of the newest run is gone: known failures were not left out"
    ]


def test_a_choice_by_precision_and_error(history: History) -> None:
    def change(_number: int, trial: Trial) -> Trial | None:
        error = 1e-4 if trial.case_id == FAST.case_id else 4e-7
        return replace(trial, outputs=[numerics(elements(FAST), max_abs=error)])

    half = told(history, change=change, wanted=Wanted(chosen=Chosen(["fp16_storage"])))
    assert ids(only(half)) == [SLOW.case_id]
    last = run_id(8)
    exact = only(best_variants(history, "nightly", last, None, Wanted(chosen=Chosen([], 1e-12))))
    assert exact.picks[0].case_id == MIDDLE.case_id
    assert left(exact) == {FAST.case_id: "NMSE 1e-08 is above 1e-12"}
    front = [v.case_id for v in only(best_variants(history, "nightly", last, None)).variants if v.front]
    assert front == [FAST.case_id, MIDDLE.case_id]
    with pytest.raises(UsageError, match="precision 'fp8': no variant has it; there are fp16_storage, fp32"):
        best_variants(history, "nightly", last, None, Wanted(chosen=Chosen(["fp8"])))
    with pytest.raises(UsageError, match="SoC 'SM1': not in these nights, which have SM8650"):
        best_variants(history, "nightly", last, None, Wanted(["SM1"]))


def test_only_the_last_fourteen_nights_are_looked_at(history: History) -> None:
    best = told(history, 16)
    assert best.runs == [run_id(n) for n in range(3, 17)]
    assert best.nights[0] == "2026-12-03"
    assert only(best).picks[0].nights == 14


def test_a_run_that_is_not_stored_is_an_error(history: History) -> None:
    told(history, 2)
    with pytest.raises(UsageError, match="not in the history"):
        best_variants(history, "nightly", "20270101T010000Z-nightly-bbbb", None)
