"""16-bit capabilities are facts of their own (field case G1-23), and only proven ones are switched on."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.profile import Profile
from orchestrator.domain.verdict import Verdict
from orchestrator.storage.blobs import BlobStore
from tests.unit.workers import gpus, streams
from tests.unit.workers.fake_device import RUNNER, Act, FakeDevice, bench
from tests.unit.workers.jobs import Stock, unsampled
from tests.unit.workers.test_bench import profile_line
from workers.bench import Bench, probe
from workers.session import run_batch
from workers.transports.base import CommandResult

KINDS = ("float16", "storage16", "uniform16", "push16", "io16")


def phone(features: dict[str, bool], unproven: dict[str, str] | None = None) -> FakeDevice:
    """A device that advertises all and proves these."""
    line = profile_line(
        api="vulkan",
        adapter="8-a1",
        advertised=dict.fromkeys(KINDS, True),
        features=dict.fromkeys(KINDS, False) | features,
        unproven=unproven or {},
    )
    return FakeDevice(probe_result=CommandResult(0, streams.whole(profile_line(), line)))


def opened(device: FakeDevice) -> Bench:
    made = bench(device)
    return replace(made, record=replace(made.record, profiles=probe(device, RUNNER)))


def vulkan(ready: Bench) -> Profile:
    found = ready.record.profile("vulkan")
    assert found is not None
    return found


@pytest.mark.parametrize("only", [{"float16": True}, {"storage16": True}])
def test_g1_23_arithmetic_and_storage_are_facts_of_their_own(only: dict[str, bool]) -> None:
    """G1-23: the first two of its three devices; enabling one without the other made a compiler abort."""
    ready = opened(phone(only))
    assert {name for name, proven in vulkan(ready).features.items() if proven} == set(only)
    assert set(vulkan(ready).features) == set(KINDS), "arith, ssbo, ubo, push and io, each by itself"
    assert ready.enable == tuple(only)


def test_g1_23_a_compiler_that_aborts_costs_its_case(tmp_path: Path) -> None:
    """G1-23: the third device. Both are advertised; the probe died, and so does a case that tries."""
    reason = "the driver crashed with signal 6"
    device = phone({"storage16": True}, {"float16": reason})
    ready = opened(device)
    assert vulkan(ready).unproven == {"float16": reason}
    assert ready.enable == ("storage16",)
    stock = Stock(BlobStore((tmp_path / "store").as_uri()))
    jobs = [stock.job(unsampled(n)) for n in range(3)]
    aborts = {"stage": "compile", "signal": 6, "log": "assertion failed: isFloat16Storage()"}
    device.script[jobs[1].case_id] = Act(status="crashed", fields=aborts)
    trials = run_batch(ready, stock.batch(*jobs), jobs, stock.store, lambda _: None)
    assert [t.verdict for t in trials] == [Verdict.PASS, Verdict.COMPILE_FAILED, Verdict.PASS]
    assert "isFloat16Storage" in trials[1].log


def test_a_job_names_the_adapter_and_what_was_proven_on_it(tmp_path: Path) -> None:
    device = phone({"float16": True, "storage16": True})
    stock = Stock(BlobStore((tmp_path / "store").as_uri()))
    job = stock.job(unsampled(0))
    run_batch(opened(device), stock.batch(job), [job], stock.store, lambda _: None)
    assert "\nadapter vulkan 8-a1\nenable float16,storage16\n" in device.jobs[0]


def test_a_device_without_vulkan_names_neither(tmp_path: Path) -> None:
    device = FakeDevice()
    made = bench(device)
    ready = replace(made, record=replace(made.record, profiles=[gpus.gles()]))
    stock = Stock(BlobStore((tmp_path / "store").as_uri()))
    job = stock.job(unsampled(0))
    run_batch(ready, stock.batch(job), [job], stock.store, lambda _: None)
    assert "adapter" not in device.jobs[0]
    assert "enable" not in device.jobs[0]
