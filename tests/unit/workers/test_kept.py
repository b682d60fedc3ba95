"""Outputs without a reference whose bytes the host wants: what a probe found comes home, also for a pass."""

from dataclasses import replace

import numpy as np

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.errors import DeviceLost
from orchestrator.domain.job import BufferJob, CaseJob
from orchestrator.domain.kernel import DType
from orchestrator.domain.verdict import Verdict
from tests.unit.workers.fake_device import Act, FakeDevice
from tests.unit.workers.jobs import WRONG, Stock, unsampled
from tests.unit.workers.test_session import run

RAW = np.array([0x3F800001, 0, 0x7FC00000], "<u4").tobytes()


def probing(
    stock: Stock, case_id: str, *, dtype: DType = "u32", count: int = 3, check: bool = False
) -> CaseJob:
    job = stock.job(case_id)
    raw = BufferJob("raw", "out", dtype, count)
    return replace(job, buffers=[*job.buffers, raw], checks=job.checks if check else [], kept=("raw",))


def test_what_a_probe_keeps_comes_home_with_a_pass(phone: FakeDevice, stock: Stock) -> None:
    phone.script["probe"] = Act(kept={"raw": RAW})
    (trial,) = run(phone, stock, probing(stock, "probe"))
    assert (trial.verdict, trial.recheck) == (Verdict.PASS, ""), "there is nothing to compare it with"
    assert stock.store.get(trial.tensors["raw"]) == RAW
    assert "keep raw always" in phone.jobs[0]


def test_halves_are_cut_to_their_size(phone: FakeDevice, stock: Stock) -> None:
    """The runner hashes the elements; a buffer on the device is padded to four bytes."""
    phone.script["probe"] = Act(kept={"raw": RAW[:6]})
    phone.on_pull = lambda _path, data: data + b"\0\0"
    (trial,) = run(phone, stock, probing(stock, "probe", dtype="f16"))
    assert stock.store.get(trial.tensors["raw"]) == RAW[:6]


def test_what_is_pulled_must_be_what_the_runner_hashed(phone: FakeDevice, stock: Stock) -> None:
    phone.script["probe"] = Act(kept={"raw": RAW})
    phone.on_pull = lambda _path, data: data[:-1] + b"\x01"
    (trial,) = run(phone, stock, probing(stock, "probe"))
    assert (trial.verdict, trial.recheck, trial.tensors) == (Verdict.INFRA, "disagreed", {})
    assert "raw: pulled tensor has hash" in trial.reason


def test_checked_and_kept_outputs_come_together(phone: FakeDevice, stock: Stock) -> None:
    case = unsampled(0)
    phone.script[case] = Act(output=WRONG, kept={"raw": RAW})
    (trial,) = run(phone, stock, probing(stock, case, check=True))
    assert (trial.verdict, trial.recheck) == (Verdict.MISMATCH, "agreed")
    assert set(trial.tensors) == {"o", "raw"}


def test_a_kept_output_that_differs_between_replays_comes_home(phone: FakeDevice, stock: Stock) -> None:
    """The first of its results, whose hash the record names."""
    hashes = {sha256_hex(RAW): 40, "b" * 64: 20}
    phone.script["probe"] = Act(kept={"raw": RAW}, kept_changes={"hashes": hashes})
    (trial,) = run(phone, stock, probing(stock, "probe"))
    assert trial.verdict is Verdict.NONDETERMINISTIC
    assert stock.store.get(trial.tensors["raw"]) == RAW


def test_no_room_on_the_phone_leaves_the_verdict(phone: FakeDevice, stock: Stock) -> None:
    phone.script["probe"] = Act(keeps=False)
    (trial,) = run(phone, stock, probing(stock, "probe"))
    assert (trial.verdict, trial.tensors) == (Verdict.PASS, {})


def test_a_link_that_drops_while_it_is_pulled_is_infrastructure(phone: FakeDevice, stock: Stock) -> None:
    def drop(path: str, _data: bytes) -> bytes:
        raise DeviceLost(f"{path}: vanished")

    phone.on_pull = drop
    (trial,) = run(phone, stock, probing(stock, "probe"))
    assert trial.verdict is Verdict.INFRA
