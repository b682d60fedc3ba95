"""One batch on a device in memory: what comes back when all goes well."""

from dataclasses import replace

import numpy as np

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.event import Progress
from orchestrator.domain.job import CaseJob
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from tests.unit.workers import streams
from tests.unit.workers.fake_device import WORKDIR, Act, FakeDevice, bench
from tests.unit.workers.jobs import REFERENCE, WRONG, Stock, differing, sampled, unsampled
from workers.session import run_batch


def run(phone: FakeDevice, stock: Stock, *cases: CaseJob, news: list[Progress] | None = None) -> list[Trial]:
    heard = [] if news is None else news
    return run_batch(bench(phone), stock.batch(*cases), cases, stock.store, heard.append)


def test_a_pass_carries_everything_that_was_measured(phone: FakeDevice, stock: Stock) -> None:
    (trial,) = run(phone, stock, stock.job(unsampled(0), attempt=2))
    assert (trial.verdict, trial.reason) == (Verdict.PASS, "")
    assert (trial.run_id, trial.device_id, trial.attempt) == ("run-1", "fake-1", 2)
    assert trial.driver == streams.DRIVER
    assert trial.code_hash == "c0de"
    assert trial.timing is not None
    assert trial.timing.samples_ns == [1_000_000, 1_000_500]
    assert trial.sensors is not None
    assert trial.sensors.temp_mc == [41_000, 41_500]
    assert trial.outputs[0].failing == 0
    assert trial.started_at.endswith("+00:00")
    assert (trial.recheck, trial.tensors, phone.pulled) == ("", {}, [])


def test_a_mismatch_brings_its_tensor_home(phone: FakeDevice, stock: Stock) -> None:
    case = unsampled(0)
    phone.script[case] = Act(output=WRONG)
    (trial,) = run(phone, stock, stock.job(case))
    assert trial.verdict is Verdict.MISMATCH
    assert "1 of 4 elements outside tolerance" in trial.reason
    assert trial.recheck == "agreed"
    assert stock.store.get(trial.tensors["o"]) == np.array(WRONG, "<f4").tobytes()


def test_a_pass_of_the_sample_is_compared_again_on_the_host(phone: FakeDevice, stock: Stock) -> None:
    (trial,) = run(phone, stock, stock.job(sampled()))
    assert (trial.verdict, trial.recheck) == (Verdict.PASS, "agreed")
    assert stock.store.get(trial.tensors["o"]) == np.array(REFERENCE, "<f4").tobytes()
    assert "keep o always" in phone.jobs[0]


def test_the_sample_is_about_one_pass_in_sixteen_and_another_one_each_run(
    phone: FakeDevice, stock: Stock
) -> None:
    jobs = [stock.job(f"case-{n}") for n in range(320)]
    drawn: list[set[str]] = []
    for run_id in ("run-1", "run-2", "run-1"):
        trials = run_batch(bench(phone), stock.batch(*jobs, run_id=run_id), jobs, stock.store, lambda _: None)
        drawn.append({t.case_id for t in trials if t.recheck == "agreed"})
    assert 5 <= len(drawn[0]) <= 40
    assert drawn[0] != drawn[1]
    assert drawn[0] == drawn[2], "a batch that is repeated draws the same"


def test_nondeterministic_results_bring_the_first_tensor_home(phone: FakeDevice, stock: Stock) -> None:
    case = unsampled(0)
    phone.script[case] = differing()
    (trial,) = run(phone, stock, stock.job(case, replays=5))
    assert trial.verdict is Verdict.NONDETERMINISTIC
    assert trial.recheck == "agreed"
    assert set(trial.tensors) == {"o"}


def test_trials_come_in_the_order_of_the_cases(phone: FakeDevice, stock: Stock) -> None:
    jobs = [stock.job(f"case-{n}") for n in (3, 1, 2)]
    assert [t.case_id for t in run(phone, stock, *jobs)] == ["case-3", "case-1", "case-2"]


def test_progress_tells_each_start_and_end(phone: FakeDevice, stock: Stock) -> None:
    news: list[Progress] = []
    run(phone, stock, stock.job("case-1"), stock.job("case-2"), news=news)
    told = [(p.state, p.case_id) for p in news]
    assert told == [("started", "case-1"), ("ended", "case-1"), ("started", "case-2"), ("ended", "case-2")]
    assert {p.device_id for p in news} == {"fake-1"}


def test_blobs_travel_once(phone: FakeDevice, stock: Stock) -> None:
    run(phone, stock, stock.job("case-1"), stock.job("case-2"))
    blobs = [p for p in phone.pushed if "/blobs/" in p]
    assert len(blobs) == len(set(blobs)) == 3, "input, shader and reference, shared by both cases"
    run(phone, stock, stock.job("case-3"))
    assert [p for p in phone.pushed if "/blobs/" in p] == blobs, "they are there already"
    run(phone, stock, stock.job("case-4", shader=b"another\n"))
    assert len([p for p in phone.pushed if "/blobs/" in p]) == 4


def test_blobs_on_the_device_are_what_their_names_say(phone: FakeDevice, stock: Stock) -> None:
    run(phone, stock, stock.job("case-1"))
    for name in phone.blobs():
        assert sha256_hex(phone.files[f"{WORKDIR}/blobs/{name}"]) == name


def test_nothing_stays_on_the_device_but_blobs(phone: FakeDevice, stock: Stock) -> None:
    phone.files[f"{WORKDIR}/jobs/killed/tensors/x.bin"] = b"left behind by a worker that was killed"
    phone.script["case-1"] = Act(output=WRONG)
    run(phone, stock, stock.job("case-1"))
    assert [p for p in phone.files if not p.startswith(f"{WORKDIR}/blobs/")] == []


def test_g1_17_one_crash_of_forty_is_blamed_on_one(phone: FakeDevice, stock: Stock) -> None:
    jobs = [stock.job(unsampled(n)) for n in range(40)]
    reason = "the context was lost (GL_GUILTY_CONTEXT_RESET)"
    lost = {"stage": "dispatch", "exit_code": 77, "reason": reason}
    phone.script[jobs[7].case_id] = Act(status="crashed", fields=lost)
    phone.script[jobs[9].case_id] = Act(output=WRONG)
    trials = run(phone, stock, *jobs)
    assert [t.case_id for t in trials if t.verdict is Verdict.CRASHED] == [jobs[7].case_id]
    assert trials[7].reason == f"dispatch: {reason}"
    assert [t.case_id for t in trials if t.verdict is Verdict.MISMATCH] == [jobs[9].case_id]
    assert sum(t.verdict is Verdict.PASS for t in trials) == 38


def test_the_drivers_log_comes_with_a_compile_failure(phone: FakeDevice, stock: Stock) -> None:
    failed = {"stage": "compile", "log": "0:1: \u00ff oops", "log_truncated": True}
    phone.script["case-1"] = Act(status="compile_failed", fields=failed)
    (trial,) = run(phone, stock, stock.job("case-1"))
    assert trial.verdict is Verdict.COMPILE_FAILED
    assert trial.log.startswith("0:1: ÿ oops")
    assert "cut" in trial.log


def test_half_precision_outputs_are_compared_as_halves(phone: FakeDevice, stock: Stock) -> None:
    three = replace(stock, references={"o": (0.5, 2.0, -0.25)})
    case = unsampled(0)
    phone.script[case] = Act(output=(0.5, 2.0, 8.0))
    (trial,) = run(phone, three, three.job(case, dtype="f16"))
    assert (trial.verdict, trial.recheck) == (Verdict.MISMATCH, "agreed")


def test_several_outputs_are_all_kept_when_one_fails(phone: FakeDevice, stock: Stock) -> None:
    two = replace(stock, references={"o": REFERENCE, "l": (1.0, -2.0, 0.75, 0.0)})
    case = unsampled(0)
    phone.script[case] = Act(output=WRONG)
    (trial,) = run(phone, two, two.job(case))
    assert trial.verdict is Verdict.MISMATCH
    assert trial.reason.startswith("o: 1 of 4")
    assert set(trial.tensors) == {"o", "l"}
    assert trial.recheck == "agreed"
