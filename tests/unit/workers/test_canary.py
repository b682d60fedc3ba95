"""A canary before and after each API's cases: without it, nothing in between counts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from orchestrator.domain.job import CanaryJob, CanaryLatency, CaseJob
from orchestrator.domain.trial import Canary, Trial
from orchestrator.domain.verdict import Verdict
from tests.unit.workers.fake_device import Act, FakeDevice, bench
from tests.unit.workers.jobs import WRONG, Stock, differing, sampled, unsampled
from workers.bench import Bench
from workers.session import run_batch

BEFORE, AFTER = "canary-before-gles", "canary-after-gles"


def took(*wall_ms: float, gpu_ms: Sequence[float] = ()) -> Act:
    """A right answer after so long."""
    timing: Mapping[str, object] = {
        "wall_ns": [round(ms * 1e6) for ms in wall_ms],
        "gpu_ns": [round(ms * 1e6) for ms in gpu_ms],
        "gpu_timer": "trusted" if gpu_ms else "absent",
    }
    return Act(timing=timing)


def canary(stock: Stock, *, api: str = "gles", expected_ms: float = 2.0, factor: float = 2.0) -> CanaryJob:
    job = replace(stock.job("cana"), api=api, label="canary", deadline_ms=5000)
    ns = round(expected_ms * 1e6)
    return CanaryJob(job, factor, CanaryLatency(job.code_hash, gpu_ns=ns, wall_ns=ns))


def run(
    phone: FakeDevice | Bench, stock: Stock, canaries: Sequence[CanaryJob], *cases: CaseJob
) -> list[Trial]:
    ready = bench(phone) if isinstance(phone, FakeDevice) else phone
    batch = replace(stock.batch(*cases), canaries=list(canaries))
    return run_batch(ready, batch, cases, stock.store, lambda _: None)


def order(job: str) -> list[str]:
    return [line.removeprefix("case ") for line in job.splitlines() if line.startswith("case ")]


def test_each_api_runs_together_between_its_canaries(phone: FakeDevice, stock: Stock) -> None:
    on = [("case-1", "vulkan"), ("case-2", "gles"), ("case-3", "vulkan")]
    cases = [replace(stock.job(case_id), api=api) for case_id, api in on]
    trials = run(
        phone, stock, [canary(stock, expected_ms=0), canary(stock, api="vulkan", expected_ms=0)], *cases
    )
    assert order(phone.jobs[0]) == [
        "canary-before-vulkan", "case-1", "case-3", "canary-after-vulkan",
        "canary-before-gles", "case-2", "canary-after-gles",
    ]  # fmt: skip
    assert [t.case_id for t in trials] == ["case-1", "case-2", "case-3"], "as planned, and no canary"
    assert all(t.verdict is Verdict.PASS and t.canary is not None for t in trials)


def test_an_api_that_the_batch_does_not_use_needs_no_canary(phone: FakeDevice, stock: Stock) -> None:
    (trial,) = run(phone, stock, [canary(stock, api="vulkan")], stock.job("case-1"))
    assert order(phone.jobs[0]) == ["case-1"]
    assert (trial.verdict, trial.canary) == (Verdict.PASS, None)


def test_a_good_canary_is_kept_with_each_trial(phone: FakeDevice, stock: Stock) -> None:
    phone.script = {BEFORE: took(1.5, 1.9, 1.6), AFTER: took(3.9, 3.8, 4.4)}
    (trial,) = run(phone, stock, [canary(stock)], stock.job(unsampled(0)))
    assert trial.verdict is Verdict.PASS
    assert trial.canary == Canary(1_600_000, 3_900_000, 2_000_000, 2.0, "wall", "c0de")


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (2.0, 12.1, "canary after the batch took 12.1 ms, expected 1 ms to 4 ms"),
        (12.1, 2.0, "canary before the batch took 12.1 ms, expected 1 ms to 4 ms"),
        (2.0, 0.9, "canary after the batch took 0.9 ms, expected 1 ms to 4 ms"),
    ],
)
def test_a_canary_out_of_its_band_takes_every_result_of_the_batch(
    phone: FakeDevice, stock: Stock, before: float, after: float, says: str
) -> None:
    phone.script = {BEFORE: took(before), AFTER: took(after), "case-2": Act(output=WRONG)}
    trials = run(phone, stock, [canary(stock)], *[stock.job(f"case-{n}") for n in range(4)])
    assert [t.verdict for t in trials] == [Verdict.INFRA] * 4
    assert all(t.reason.startswith(says) for t in trials)
    assert all("throttled or disturbed; its results do not count" in t.reason for t in trials)
    assert {t.canary for t in trials} == {None}
    assert phone.pulled == [], "nobody needs these tensors"


def test_only_the_api_whose_canary_failed_loses_its_results(phone: FakeDevice, stock: Stock) -> None:
    phone.script = {"canary-after-vulkan": took(50.0)}
    cases = [stock.job("case-1"), replace(stock.job("case-2"), api="vulkan")]
    trials = run(
        phone, stock, [canary(stock, expected_ms=1), canary(stock, api="vulkan", expected_ms=1)], *cases
    )
    assert [t.verdict for t in trials] == [Verdict.PASS, Verdict.INFRA]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_canary_that_answers_wrongly_takes_every_result(phone: FakeDevice, stock: Stock, when: str) -> None:
    phone.script = {f"canary-{when}-gles": Act(output=WRONG)}
    (trial,) = run(phone, stock, [canary(stock, expected_ms=1)], stock.job("case-1"))
    assert trial.verdict is Verdict.INFRA
    assert trial.reason.startswith(f"canary {when} the batch: mismatch: o: 1 of 4 elements outside tolerance")


def test_g1_17_a_case_that_broke_the_device_is_blamed_and_named_to_the_others(
    phone: FakeDevice, stock: Stock
) -> None:
    """G1-17: one lost context was blamed on a whole batch; as infra it would be blamed on nobody."""
    dead = {"stage": "context", "signal": 11}
    phone.script = {
        "case-2": Act(status="crashed", fields={"stage": "dispatch", "signal": 11}),
        AFTER: Act(status="crashed", fields=dead),
    }
    trials = run(phone, stock, [canary(stock)], stock.job("case-1"), stock.job("case-2"))
    assert [t.verdict for t in trials] == [Verdict.INFRA, Verdict.CRASHED]
    assert all("canary after the batch: infra: the driver died" in t.reason for t in trials)
    assert trials[0].reason.endswith("In this batch: case-2 (crashed)")
    assert trials[1].reason.startswith(
        "the runner's process died in dispatch: signal 11; it counts, although"
    )


HUNG = Act(status="hung", fields={"stage": "dispatch", "deadline_ms": 5000})


def test_g1_17_a_hang_that_slows_the_next_canary_stays_the_cases_own(phone: FakeDevice, stock: Stock) -> None:
    """G1-17: the others are tried again. Those that failed after it may have met only what it left."""
    failed = Act(status="compile_failed", fields={"stage": "compile", "log": "oops"})
    phone.script = {"case-1": failed, "case-2": HUNG, "case-3": HUNG, "case-4": failed, AFTER: took(50.0)}
    jobs = [stock.job(f"case-{n}") for n in range(5)]
    trials = run(phone, stock, [canary(stock, expected_ms=1)], *jobs)
    assert [t.verdict for t in trials] == [
        Verdict.INFRA, Verdict.COMPILE_FAILED, Verdict.HUNG, Verdict.INFRA, Verdict.INFRA,
    ]  # fmt: skip
    assert trials[2].reason == (
        "still in dispatch after 5000 ms; it counts, although the canary after the batch took 50 ms, "
        "expected 0.5 ms to 2 ms"
    )
    assert trials[2].canary is None


@pytest.mark.parametrize("before", [took(50.0), Act(output=WRONG)])
def test_a_device_that_was_unwell_before_may_itself_have_hung_the_case(
    phone: FakeDevice, stock: Stock, before: Act
) -> None:
    phone.script = {BEFORE: before, "case-1": HUNG}
    (trial,) = run(phone, stock, [canary(stock, expected_ms=1)], stock.job("case-1"))
    assert trial.verdict is Verdict.INFRA


@pytest.mark.parametrize("when", [BEFORE, AFTER])
@pytest.mark.parametrize("bad", [took(50.0), Act(output=WRONG)])
def test_g1_01_no_canary_hides_replays_that_differ(
    phone: FakeDevice, stock: Stock, when: str, bad: Act
) -> None:
    """G1-01: as infra it would be tried again, and a lucky pass would turn it green."""
    case = unsampled(0)
    phone.script = {when: bad, case: differing()}
    (trial,) = run(phone, stock, [canary(stock, expected_ms=1)], stock.job(case, replays=5))
    assert (trial.verdict, trial.canary, trial.recheck) == (Verdict.NONDETERMINISTIC, None, "agreed")
    assert "; it counts, although the canary " in trial.reason


def test_a_crash_after_which_the_canary_is_well_stays_the_cases_own(phone: FakeDevice, stock: Stock) -> None:
    phone.script = {"case-2": Act(status="crashed", fields={"stage": "dispatch", "signal": 11})}
    trials = run(phone, stock, [canary(stock, expected_ms=1)], stock.job("case-1"), stock.job("case-2"))
    assert [t.verdict for t in trials] == [Verdict.PASS, Verdict.CRASHED]


def test_a_canary_without_a_time_vouches_for_nothing(phone: FakeDevice, stock: Stock) -> None:
    phone.script = {BEFORE: took()}
    (trial,) = run(phone, stock, [canary(stock)], stock.job("case-1"))
    assert (trial.verdict, "was not timed" in trial.reason) == (Verdict.INFRA, True)


@pytest.mark.parametrize(
    ("earlier", "expected_ns"),
    [
        (CanaryLatency("c0de", gpu_ns=2_100_000, wall_ns=80_000_000), 2_100_000),
        (CanaryLatency("c0de", wall_ns=80_000_000), 2_000_000),
        (CanaryLatency("0ther", gpu_ns=80_000_000), 2_000_000),
    ],
)
def test_a_canary_is_held_to_its_own_clock_and_code(
    phone: FakeDevice, stock: Stock, earlier: CanaryLatency, expected_ns: int
) -> None:
    """Where the earlier run knows neither, the first canary of this worker counts."""
    phone.script = {BEFORE: took(80.0, gpu_ms=[2.0]), AFTER: took(80.0, gpu_ms=[2.0])}
    watch = replace(canary(stock), expected=earlier)
    (trial,) = run(phone, stock, [watch], stock.job(unsampled(0)))
    assert trial.canary == Canary(2_000_000, 2_000_000, expected_ns, 2.0, "gpu", "c0de")


def test_gpu_times_count_where_both_are_trusted(phone: FakeDevice, stock: Stock) -> None:
    """One clock for both: the wall clock of a tiny case is several times its GPU time."""
    phone.script = {BEFORE: took(30.0, gpu_ms=[2.0]), AFTER: took(90.0, gpu_ms=[3.0])}
    (trial,) = run(phone, stock, [canary(stock)], stock.job(unsampled(0)))
    assert trial.canary == Canary(2_000_000, 3_000_000, 2_000_000, 2.0, "gpu", "c0de")
    phone.script = {BEFORE: took(2.1, gpu_ms=[0.01]), AFTER: took(2.2)}
    (trial,) = run(phone, stock, [canary(stock)], stock.job(unsampled(0)))
    assert trial.canary == Canary(2_100_000, 2_200_000, 2_000_000, 2.0, "wall", "c0de")


def test_without_an_expectation_the_first_good_canary_sets_it(phone: FakeDevice, stock: Stock) -> None:
    ready, watch = bench(phone), [canary(stock, expected_ms=0)]

    def batch(before_ms: float, after_ms: float) -> Trial:
        phone.script = {BEFORE: took(before_ms), AFTER: took(after_ms)}
        return run(ready, stock, watch, stock.job(unsampled(0)))[0]

    disturbed = batch(50.0, 2.0)
    assert disturbed.verdict is Verdict.INFRA, "they contradict each other"
    nothing_learnt = Canary(2_000_000, 2_500_000, 2_000_000, 2.0, "wall", "c0de")
    assert batch(2.0, 2.5).canary == nothing_learnt
    assert batch(3.9, 3.9).canary == Canary(3_900_000, 3_900_000, 2_000_000, 2.0, "wall", "c0de")
    assert batch(4.1, 3.9).verdict is Verdict.INFRA, "slow creep does not move the expectation"
    assert run(bench(phone), stock, watch, stock.job(unsampled(0)))[0].verdict is Verdict.PASS, (
        "another worker"
    )


def test_a_canary_is_no_news(phone: FakeDevice, stock: Stock) -> None:
    """Who watches the run counts planned cases."""
    told: list[str] = []
    batch = replace(stock.batch(stock.job("case-1")), canaries=[canary(stock)])
    run_batch(bench(phone), batch, batch.cases, stock.store, lambda p: told.append(p.case_id))
    assert told == ["case-1", "case-1"]


def test_a_sampled_case_keeps_the_shape_of_its_check(phone: FakeDevice, stock: Stock) -> None:
    job = stock.job(sampled())
    shaped = replace(job, checks=[replace(c, shape=(2, 2)) for c in job.checks])
    (trial,) = run(phone, stock, [], shaped)
    assert (trial.verdict, trial.recheck) == (Verdict.PASS, "agreed")
    assert "shape o 2,2\nkeep o always" in phone.jobs[0]
