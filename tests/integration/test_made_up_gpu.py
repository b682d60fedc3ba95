"""A whole session with the real runner on a made-up GPU: faults that no driver on this machine has."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestrator.domain.job import CanaryJob, CanaryLatency, CaseJob
from orchestrator.domain.settings import Settings
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.storage.blobs import BlobStore
from tests.results_fixture import device
from tests.unit.workers import gpus
from tests.unit.workers.jobs import Stock, unsampled
from workers.bench import Bench
from workers.session import run_batch
from workers.transports.local import LocalDevice

X = np.arange(8, dtype="<f4")
CANARY = b"double slow=2"


@pytest.fixture
def stock(tmp_path: Path) -> Stock:
    return Stock(BlobStore((tmp_path / "store").as_uri()), X.tobytes(), {"o": [float(2 * x) for x in X]})


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """The second of two Vulkan GPUs, which a probe found to have 16-bit storage and no 16-bit arithmetic."""
    second = replace(
        gpus.vulkan("fake GPU 1", "fake-1", kind="discrete"), features={"storage16": True, "float16": False}
    )
    record = replace(device("fake-1"), profiles=[gpus.gles("fake"), second])
    runner = Settings().runner_dir / "linux" / "runner_fake"
    return Bench(LocalDevice(tmp_path / "device"), record, str(runner))


def job(stock: Stock, number: int, words: str, *, api: str = "vulkan", replays: int = 1) -> CaseJob:
    made = stock.job(unsampled(number), shader=words.encode(), replays=replays)
    return replace(made, api=api, warmup=0, repeats=2, deadline_ms=20_000)


def canaries(stock: Stock, words: bytes = CANARY, factor: float = 1000.0) -> list[CanaryJob]:
    """Around both APIs; the factor is wide, for nothing here measures this machine."""
    tiny = replace(stock.job("canary", shader=words), repeats=3, deadline_ms=20_000)
    return [CanaryJob(replace(tiny, api=api), factor) for api in ("gles", "vulkan")]


def run(bench: Bench, stock: Stock, watch: Sequence[CanaryJob], *cases: CaseJob) -> list[Trial]:
    batch = replace(stock.batch(*cases), canaries=list(watch))
    return run_batch(bench, batch, cases, stock.store, lambda _: None)


def test_both_apis_in_one_batch_each_with_its_own_driver(bench: Bench, stock: Stock) -> None:
    """The adapter and the proven features reach the driver; GLES is opened without them."""
    cases = [job(stock, 0, "double"), job(stock, 1, "double", api="gles"), job(stock, 2, "double")]
    trials = run(bench, stock, canaries(stock), *cases)
    assert [t.verdict for t in trials] == [Verdict.PASS] * 3, [t.reason for t in trials]
    assert [t.driver for t in trials][::2] == ["fake GPU 1; enabled: storage16"] * 2
    assert trials[1].driver.startswith("fake")
    assert "enabled" not in trials[1].driver
    assert all(t.canary is not None and t.canary.before_ns >= 2_000_000 for t in trials)


def test_g1_17_a_lost_device_is_blamed_on_one_of_forty(bench: Bench, stock: Stock) -> None:
    """G1-17: everything after the loss fails in that process; the others run again in a fresh one, and the
    canary after the batch finds the device well."""
    words = ["lost=now" if n == 7 else "double" for n in range(40)]
    trials = run(bench, stock, canaries(stock), *[job(stock, n, w) for n, w in enumerate(words)])
    assert [n for n, t in enumerate(trials) if t.verdict is not Verdict.PASS] == [7]
    assert trials[7].verdict is Verdict.CRASHED
    assert "lost" in trials[7].reason


def test_a_gpu_that_answers_its_canary_wrongly_measured_nothing(bench: Bench, stock: Stock) -> None:
    trials = run(bench, stock, canaries(stock, b"corrupt=1 double"), job(stock, 0, "double"))
    assert trials[0].verdict is Verdict.INFRA
    assert trials[0].reason.startswith("canary before the batch: mismatch: o: 1 of 8 elements")


def test_a_gpu_that_is_throttled_measured_nothing(bench: Bench, stock: Stock) -> None:
    """The canary was to take microseconds and takes two milliseconds."""
    earlier = CanaryLatency("c0de", gpu_ns=2_000, wall_ns=2_000)
    watch = [replace(c, expected=earlier, factor=10.0) for c in canaries(stock)]
    trials = run(bench, stock, watch, job(stock, 0, "double"), job(stock, 1, "double", api="gles"))
    assert {t.verdict for t in trials} == {Verdict.INFRA}
    assert all("expected 0.0002 ms to 0.02 ms" in t.reason for t in trials)


def test_g1_01_races_are_boxed_and_never_a_pass(bench: Bench, stock: Stock) -> None:
    """G1-01: 23 of 100 executions leave a wrong block, each time another one."""
    square = replace(stock, inputs=bytes(4 * 64), references={"o": [0.0] * 64})
    case = job(square, 0, "double corrupt_block=2,1,3,4,8,100", replays=100)
    shaped = replace(case, checks=[replace(c, shape=(8, 8)) for c in case.checks])
    (trial,) = run(bench, square, [], shaped)
    assert trial.verdict is Verdict.NONDETERMINISTIC
    differs = trial.outputs[0].differs
    assert differs is not None
    assert differs.box == [(2, 3), (1, 4)]
    assert trial.recheck == "agreed"


def test_g1_15_a_pass_that_writes_nothing_is_no_pass(bench: Bench, stock: Stock) -> None:
    """G1-15: as an oversized workgroup leaves its output, with a reference that is zero."""
    zeros = replace(stock, references={"o": [0.0] * 8})
    (trial,) = run(bench, zeros, [], job(zeros, 0, "none"))
    assert trial.verdict is Verdict.MISMATCH
    assert "8 of 8 elements never written" in trial.reason


def test_g1_23_a_compiler_that_aborts_takes_only_its_case(bench: Bench, stock: Stock) -> None:
    words = ["double", "crash=compile", "double"]
    trials = run(bench, stock, canaries(stock), *[job(stock, n, w) for n, w in enumerate(words)])
    assert [t.verdict for t in trials] == [Verdict.PASS, Verdict.COMPILE_FAILED, Verdict.PASS]
    assert "assertion failed in compile" in trials[1].log + trials[1].reason
