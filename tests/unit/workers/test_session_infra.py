"""A batch that meets trouble: no kernel is blamed for it, and no result that is proven gets lost."""

from pathlib import Path

import pytest

from orchestrator.domain.errors import DeviceLost, InfraError, LeaseLost
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.storage.blobs import BlobStore
from tests.unit.workers import streams
from tests.unit.workers.fake_device import WORKDIR, Act, FakeDevice, bench
from tests.unit.workers.jobs import WRONG, Stock, differing, sampled, unsampled
from tests.unit.workers.test_session import run
from workers import session
from workers.session import infra_trials


def verdicts(trials: list[Trial]) -> list[Verdict]:
    return [t.verdict for t in trials]


@pytest.mark.parametrize("after", [0, 1, 60, 400, 1200, 1700])
def test_g2_01_a_link_that_drops_blames_nobody(phone: FakeDevice, stock: Stock, after: int) -> None:
    phone.link_lasts = after
    phone.script["case-1"] = Act(output=WRONG)
    trials = run(phone, stock, *[stock.job(f"case-{n}", attempt=2) for n in range(4)])
    assert verdicts(trials) == [Verdict.INFRA] * 4
    assert [(t.case_id, t.attempt) for t in trials] == [(f"case-{n}", 2) for n in range(4)]
    assert all("link dropped" in t.reason and not t.outputs for t in trials)


def test_g2_01_output_that_ends_early_without_an_error_blames_nobody(phone: FakeDevice, stock: Stock) -> None:
    """What adb's shell() does: the partial text, no exception, exit code 0."""
    phone.stdout = lambda text: text[: text.rindex(b'{"type":"final"')]
    trials = run(phone, stock, stock.job("case-1"), stock.job("case-2"))
    assert verdicts(trials) == [Verdict.INFRA] * 2
    assert all("without a final record" in t.reason for t in trials)


def test_a_runner_that_ends_with_an_error_after_a_whole_output_blames_nobody(
    phone: FakeDevice, stock: Stock
) -> None:
    phone.exit_code = 137
    (trial,) = run(phone, stock, stock.job("case-1"))
    assert trial.verdict is Verdict.INFRA
    assert "exit code 137" in trial.reason


def test_a_case_without_an_end_record_is_infrastructure_alone(phone: FakeDevice, stock: Stock) -> None:
    """The output is whole and proven, but holds nothing of the second case."""

    def forget(text: bytes) -> bytes:
        lines = [x for x in text.splitlines(keepends=True) if b'"final"' not in x and b'"case-2"' not in x]
        return streams.whole(*lines)

    phone.stdout = forget
    trials = run(phone, stock, stock.job("case-1"), stock.job("case-2"))
    assert verdicts(trials) == [Verdict.PASS, Verdict.INFRA]
    assert "no end record" in trials[1].reason


def fill(phone: FakeDevice, old_blobs: int, size: int) -> None:
    for n in range(old_blobs):
        phone.files[f"{WORKDIR}/blobs/{n:064x}"] = bytes(size)


def test_a_full_phone_gets_room_from_old_blobs(phone: FakeDevice, stock: Stock) -> None:
    fill(phone, 10, 1000)
    phone.capacity = 10_020
    trials = run(phone, stock, stock.job("case-1"))
    assert verdicts(trials) == [Verdict.PASS]
    assert stock.job("case-1").blobs() < phone.blobs(), "no more is removed than room was needed"


def test_a_phone_that_stays_full_is_infrastructure(phone: FakeDevice, stock: Stock) -> None:
    fill(phone, 1, 10)
    phone.capacity = 60
    trials = run(phone, stock, stock.job("case-1"), stock.job("case-2"))
    assert verdicts(trials) == [Verdict.INFRA] * 2
    assert "No space left on device" in trials[0].reason


def test_under_the_quota_old_blobs_stay(phone: FakeDevice, stock: Stock) -> None:
    fill(phone, 3, 1000)
    run(phone, stock, stock.job("case-1"))
    assert len(phone.blobs()) == 6


@pytest.mark.parametrize("case", [unsampled(0), sampled()])
def test_a_host_that_sees_another_tensor_trusts_nobody(phone: FakeDevice, stock: Stock, case: str) -> None:
    if case == unsampled(0):
        phone.script[case] = Act(output=WRONG)
    phone.on_pull = lambda _path, data: data[:-1] + bytes([data[-1] ^ 1])
    (trial,) = run(phone, stock, stock.job(case))
    assert (trial.verdict, trial.recheck) == (Verdict.INFRA, "disagreed")
    assert "pulled tensor has hash" in trial.reason


def test_a_runner_that_calls_a_right_tensor_wrong_is_not_believed(phone: FakeDevice, stock: Stock) -> None:
    case = sampled()
    phone.script[case] = Act(changes={"failing": 2, "nmse": 1.0})
    (trial,) = run(phone, stock, stock.job(case))
    assert (trial.verdict, trial.recheck) == (Verdict.INFRA, "disagreed")
    assert "host counts 0 failing elements, the runner 2" in trial.reason


def test_a_runner_that_calls_a_wrong_tensor_right_is_found_out_by_the_sample(
    phone: FakeDevice, stock: Stock
) -> None:
    case = sampled()
    phone.script[case] = Act(output=WRONG, changes={"failing": 0, "nmse": 0.0})
    (trial,) = run(phone, stock, stock.job(case))
    assert (trial.verdict, trial.recheck) == (Verdict.INFRA, "disagreed")


def test_a_link_that_drops_after_the_proof_costs_only_what_was_to_be_pulled(
    phone: FakeDevice, stock: Stock
) -> None:
    def drop(path: str, _data: bytes) -> bytes:
        raise DeviceLost(f"{path}: vanished")

    phone.on_pull = drop
    cases = [unsampled(0), unsampled(1), unsampled(2), sampled()]
    phone.script[cases[0]], phone.script[cases[2]] = Act(output=WRONG), differing()
    trials = run(phone, stock, *[stock.job(c, replays=5 if c == cases[2] else 1) for c in cases])
    assert verdicts(trials) == [
        Verdict.MISMATCH, Verdict.PASS, Verdict.NONDETERMINISTIC, Verdict.INFRA,
    ], "a failure that is proven is not tried again until it passes"  # fmt: skip
    assert all("could not be compared on the host: " in trials[n].reason for n in (0, 2, 3))
    assert "1 of 4 elements outside tolerance" in trials[0].reason
    assert {t.recheck for t in trials} == {""}
    assert len(phone.pulled) == 1, "the next pulls would only wait for their deadlines"


def test_g1_01_a_tensor_damaged_on_its_way_hides_no_replays_that_differ(
    phone: FakeDevice, stock: Stock
) -> None:
    """G1-01: the hashes of the replays are proven by the runner's output, whatever the pull brought."""
    case = unsampled(0)
    phone.script[case] = differing()
    phone.on_pull = lambda _path, data: data[:-1] + bytes([data[-1] ^ 1])
    (trial,) = run(phone, stock, stock.job(case, replays=5))
    assert (trial.verdict, trial.recheck, trial.tensors) == (Verdict.NONDETERMINISTIC, "disagreed", {})
    assert "pulled tensor has hash" in trial.reason


def test_a_tensor_that_the_phone_had_no_room_for_leaves_the_verdict(phone: FakeDevice, stock: Stock) -> None:
    case = unsampled(0)
    phone.script[case] = Act(output=WRONG, keeps=False)
    trials = run(phone, stock, stock.job(case), stock.job(unsampled(1)))
    assert verdicts(trials) == [Verdict.MISMATCH, Verdict.PASS]
    assert (trials[0].recheck, trials[0].tensors) == ("", {})
    assert trials[0].outputs[0].keep_error == "No space left on device"


@pytest.mark.parametrize(("asked", "pushed"), [(1, 0), (2, 0), (3, 1), (4, 2)])
def test_a_lease_that_is_lost_before_the_job_runs_ends_the_pushing(
    phone: FakeDevice, stock: Stock, asked: int, pushed: int
) -> None:
    left = [asked]

    def still_ours() -> None:
        left[0] -= 1
        if not left[0]:
            raise LeaseLost("somebody has it")

    job = stock.job("case-1")
    with pytest.raises(LeaseLost):
        session.run_batch(bench(phone), stock.batch(job), [job], stock.store, lambda _: None, still_ours)
    assert (len(phone.pushed), phone.jobs, phone.removed) == (pushed, [], [])


def test_a_lease_that_was_lost_at_the_end_leaves_the_folders_to_who_has_the_phone_now(
    phone: FakeDevice, stock: Stock
) -> None:
    ended: list[str] = []

    def still_ours() -> None:
        if ended:
            raise LeaseLost("somebody has it")

    phone.on_pull = lambda path, data: (ended.append(path), data)[1]
    wrong = unsampled(1)
    phone.script[wrong] = Act(output=WRONG)
    jobs = [stock.job(sampled()), stock.job(wrong), stock.job(unsampled(0))]
    found = session.run_batch(bench(phone), stock.batch(*jobs), jobs, stock.store, lambda _: None, still_ours)
    assert verdicts(found) == [Verdict.PASS, Verdict.MISMATCH, Verdict.PASS], "what is measured stays"
    assert found[1].reason.endswith("; somebody has it")
    assert (len(phone.pulled), phone.removed) == (1, []), "nothing more is asked of the phone"


def test_a_clean_up_that_fails_loses_no_result(phone: FakeDevice, stock: Stock) -> None:
    phone.remove_error = DeviceLost("gone")
    assert verdicts(run(phone, stock, stock.job("case-1"))) == [Verdict.PASS]


def test_a_blob_that_the_store_lost_is_infrastructure(
    phone: FakeDevice, stock: Stock, tmp_path: Path
) -> None:
    job = stock.job("case-1")
    elsewhere = BlobStore((tmp_path / "empty").as_uri())
    trials = session.run_batch(bench(phone), stock.batch(job), [job], elsewhere, lambda _: None)
    assert verdicts(trials) == [Verdict.INFRA]
    assert "TILEFARM_BLOBS" in trials[0].reason
    assert phone.jobs == [], "nothing is started that cannot run"


def test_a_blob_that_was_damaged_on_the_phone_is_pushed_again(phone: FakeDevice, stock: Stock) -> None:
    """A phone that died while it wrote leaves files of the right name without their content."""
    job = stock.job("case-1")
    damaged = job.passes[0].shader
    reason = f"blob {damaged}: its content has another sha256"
    phone.script["case-1"] = Act(status="error", fields={"stage": "buffers", "reason": reason})
    phone.files[f"{WORKDIR}/blobs/{damaged}"] = b""
    assert verdicts(run(phone, stock, job)) == [Verdict.INFRA]
    del phone.script["case-1"]
    assert verdicts(run(phone, stock, job)) == [Verdict.PASS]
    assert phone.pushed.count(f"{WORKDIR}/blobs/{damaged}") == 1


def test_infra_rows_name_case_attempt_and_reason(phone: FakeDevice, stock: Stock) -> None:
    jobs = [stock.job("case-1", attempt=3), stock.job("case-2")]
    rows = infra_trials(bench(phone), "run-1", jobs, str(InfraError("no power")))
    assert [(r.case_id, r.attempt, r.verdict, r.reason) for r in rows] == [
        ("case-1", 3, Verdict.INFRA, "no power"),
        ("case-2", 1, Verdict.INFRA, "no power"),
    ]
