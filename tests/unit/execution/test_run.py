"""One run from plan to results.json, with a farm in memory."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.case import Case
from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.job import CanaryLatency
from orchestrator.domain.results import Missing, Pruned
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.run import Asked, Request, carry_out, git_commit, start_run
from orchestrator.execution.run_folder import RunFolder, load_results
from orchestrator.planning.canary import PlannedCanary
from orchestrator.planning.estimate import Estimate
from orchestrator.planning.kernel_folder import LoadedKernel
from orchestrator.planning.matrix import Sampling, Suite
from orchestrator.planning.plan import DevicePlan, Plan, PlannedCase
from tests.results_fixture import device
from tests.unit.execution.fake_farm import FakeFarm, Notes
from tests.unit.execution.toy_kernel import Doubling, load, point

CASES = [point(5), point(5, tile="16"), point(5, inputs="zeros"), point(99, tile="16")]
SMALL, WIDE, ZEROS, NOWHERE = (c.case_id for c in CASES)
TOO_BIG = Pruned("phone-a", NOWHERE, Verdict.UNSUPPORTED, ["shared_bytes 64 > 32"])


@pytest.fixture
def kernel() -> Doubling:
    return Doubling()


@pytest.fixture
def kernels(tmp_path: Path, kernel: Doubling) -> dict[str, LoadedKernel]:
    return {"doubling": load(tmp_path / "kernels", kernel)}


def plan(jobs: Mapping[str, list[Case]]) -> Plan:
    guess = Estimate(1.0, "guess")
    devices = [
        DevicePlan(device(d), [PlannedCase(c.case_id, c, guess) for c in cs]) for d, cs in jobs.items()
    ]
    return Plan(Suite("smoke", ()), {c.case_id: c for c in CASES}, devices, pruned=[TOO_BIG])


def request(out: Path, run_id: str = "20261201T010000Z-smoke-aaaa") -> Request:
    blobs = (out / "blobs").as_uri()
    missing = [Missing("pixel", "", "unauthorized")]
    return Request(run_id, out, blobs, "nightly", "tilefarm run", missing, out / "spirv")


def start(
    out: Path, kernels: dict[str, LoadedKernel], run_id: str = "20261201T010000Z-smoke-aaaa"
) -> RunFolder:
    jobs = {"phone-a": CASES[:3], "phone-b": CASES[:1]}
    return start_run(plan(jobs), kernels, request(out, run_id), lambda _: None)


def test_everything_is_on_disk_before_anything_runs(
    tmp_path: Path, kernels: dict[str, LoadedKernel], kernel: Doubling
) -> None:
    manifest = start(tmp_path, kernels).manifest()
    assert {d: [j.case_id for j in jobs] for d, jobs in manifest.jobs.items()} == {
        "phone-a": [SMALL, WIDE],
        "phone-b": [SMALL],
    }
    assert manifest.lane == "nightly"
    assert manifest.planned.missing == [Missing("pixel", "", "unauthorized")]
    assert (manifest.planned.run.suite, manifest.planned.run.finished_at) == ("smoke", "")
    assert kernel.calls["reference"] == 2, "once a workload, not once a device"


def test_g1_02_a_case_without_signal_is_pruned_with_its_reason(
    tmp_path: Path, kernels: dict[str, LoadedKernel]
) -> None:
    pruned = start(tmp_path, kernels).manifest().planned.pruned
    assert pruned[0] == TOO_BIG
    assert [(p.device_id, p.case_id, p.verdict) for p in pruned[1:]] == [("phone-a", ZEROS, Verdict.INVALID)]
    assert pruned[1].reasons == ["reference_absmax 0 < 1e-12"]


def test_cases_that_run_nowhere_are_still_described(
    tmp_path: Path, kernels: dict[str, LoadedKernel], kernel: Doubling
) -> None:
    cases = start(tmp_path, kernels).manifest().planned.cases
    assert set(cases) == {SMALL, WIDE, ZEROS, NOWHERE}
    assert cases[NOWHERE].code_hash == ""
    assert cases[NOWHERE].shared_bytes == 64
    assert cases[SMALL].code_hash != ""
    assert kernel.calls["inputs"] == 2, "no data is made for what nobody runs"


def test_a_run_ends_in_results_json(tmp_path: Path, kernels: dict[str, LoadedKernel]) -> None:
    folder = start(tmp_path, kernels)
    farm = FakeFarm(workers={"phone-a": "w1", "phone-b": "w2"})
    notes = Notes()
    done = carry_out(folder, farm, notes, tmp_path)
    assert load_results(folder.path) == done
    assert {(t.device_id, t.case_id) for t in done.trials} == {
        ("phone-a", SMALL),
        ("phone-a", WIDE),
        ("phone-b", SMALL),
    }
    assert done.run.finished_at
    assert done.previous_run == ""
    assert {lane for _, lane in farm.sent} == {"nightly"}
    assert len(notes.trials) == 3


def test_the_next_run_is_compared_with_this_one(tmp_path: Path, kernels: dict[str, LoadedKernel]) -> None:
    farm = FakeFarm(workers={"phone-a": "w1", "phone-b": "w2"})
    first = carry_out(start(tmp_path, kernels), farm, Notes(), tmp_path)
    second = carry_out(start(tmp_path, kernels, "20261202T010000Z-smoke-bbbb"), farm, Notes(), tmp_path)
    assert second.previous_run == first.run.run_id


def test_a_run_that_was_cut_off_is_completed(tmp_path: Path, kernels: dict[str, LoadedKernel]) -> None:
    folder = start(tmp_path, kernels)
    farm = FakeFarm(workers={"phone-a": "w1", "phone-b": "w2"})
    notes = Notes()

    def cut(_trial: object) -> None:
        raise KeyboardInterrupt

    notes.on_trial = cut
    with pytest.raises(KeyboardInterrupt):
        carry_out(folder, farm, notes, tmp_path)
    assert not folder.results_json.exists()
    already = len(folder.trials())
    again = FakeFarm(workers={"phone-a": "w3", "phone-b": "w4"})
    done = carry_out(RunFolder(folder.path), again, Notes(), tmp_path)
    assert len(done.trials) == 3
    assert len(again.attempts()) == 3 - already
    assert done.missing == [Missing("pixel", "", "unauthorized")]


def guarded(canary: Case) -> Plan:
    """phone-a has a canary for the only API; phone-b has none."""
    whole = plan({"phone-a": CASES[:2], "phone-b": CASES[:1]})
    guess = Estimate(0.2, "guess")
    planned = PlannedCanary(
        canary.case_id, canary, "gles", guess, factor=5.0, expected=CanaryLatency("b1rd", 40_000)
    )
    first, second = whole.devices
    return replace(
        whole,
        cases=whole.cases | {canary.case_id: canary},
        devices=[replace(first, canaries=[planned]), second],
        sampling={canary.case_id: Sampling(repeats=3)},
    )


def test_canaries_are_planned_once_and_a_resumed_run_keeps_them(
    tmp_path: Path, kernels: dict[str, LoadedKernel]
) -> None:
    bird = point(7)
    folder = start_run(guarded(bird), kernels, request(tmp_path), lambda _: None)
    manifest = folder.manifest()
    (canary,) = manifest.canaries["phone-a"]
    assert manifest.canaries["phone-b"] == []
    assert (canary.job.case_id, canary.factor, canary.expected.gpu_ns) == (bird.case_id, 5.0, 40_000)
    assert (canary.job.repeats, canary.job.estimate_ms) == (3, 200)
    assert bird.case_id in manifest.planned.cases
    assert [j.case_id for j in manifest.jobs["phone-a"]] == [SMALL, WIDE], "no case of its own"
    farm = FakeFarm(workers={"phone-a": "w1", "phone-b": "w2"})
    carry_out(RunFolder(folder.path), farm, Notes(), tmp_path)
    sent = {b.device_id: [c.job.case_id for c in b.canaries] for b, _ in farm.sent}
    assert sent == {"phone-a": [bird.case_id], "phone-b": []}


def test_only_hardware_warms_up_by_time(tmp_path: Path, kernels: dict[str, LoadedKernel]) -> None:
    """A software driver's clock is its host's (decision 0017); each API of a device counts for itself."""
    bird = point(7)
    whole = guarded(bird)
    first, second = whole.devices
    (profile,) = first.device.profiles
    hardware = replace(first.device, profiles=[replace(profile, renderer="NVIDIA H200/PCIe/SSE2")])
    mixed = replace(second.device, profiles=[profile, replace(hardware.profiles[0], api="vulkan")])
    warm = replace(
        whole,
        devices=[replace(first, device=hardware), replace(second, device=mixed, canaries=first.canaries)],
        suite=replace(whole.suite, sampling=Sampling(warmup_ms=400)),
        sampling={bird.case_id: Sampling(warmup_ms=100)},
    )
    manifest = start_run(warm, kernels, request(tmp_path), lambda _: None).manifest()
    assert [j.warmup_ms for j in manifest.jobs["phone-a"]] == [400, 400]
    assert [c.job.warmup_ms for c in manifest.canaries["phone-a"]] == [100]
    assert [j.warmup_ms for j in manifest.jobs["phone-b"]] == [0], "its GLES is llvmpipe"
    assert [c.job.warmup_ms for c in manifest.canaries["phone-b"]] == [0]


def test_a_canary_without_signal_could_vouch_for_nothing(
    tmp_path: Path, kernels: dict[str, LoadedKernel]
) -> None:
    with pytest.raises(KernelFolderError, match="the canary has no signal: reference_absmax 0"):
        start_run(guarded(point(7, inputs="zeros")), kernels, request(tmp_path), lambda _: None)


def test_what_was_asked_and_what_compiled_it_is_kept(
    tmp_path: Path, kernels: dict[str, LoadedKernel]
) -> None:
    asked = replace(request(tmp_path), asked=Asked(probes=False))
    run = start_run(plan({"phone-a": CASES[:1]}), kernels, asked, lambda _: None).manifest().planned.run
    assert (run.probes, run.compiler) == (False, "")
    vulkan = point(5, api="vulkan")
    both = replace(plan({"phone-a": [vulkan]}), cases={vulkan.case_id: vulkan}, pruned=[])
    again = request(tmp_path, "20261201T020000Z-smoke-bbbb")
    run = start_run(both, kernels, again, lambda _: None).manifest().planned.run
    assert run.probes
    assert run.compiler.startswith("glslang 11:13")


def git(folder: Path, *words: str) -> None:
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    names = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *names, *words], cwd=folder, check=True, capture_output=True, env=os.environ | own)


def test_the_commit_says_whether_the_tree_was_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_commit(tmp_path) == "", "outside git"
    git(tmp_path, "init", "-q")
    assert git_commit(tmp_path) == "", "nothing was ever committed"
    (tmp_path / "matrix.yaml").write_text("suites: {}\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    clean = git_commit(tmp_path)
    assert len(clean) == 12
    (tmp_path / "matrix.yaml").write_text("suites: {smoke: []}\n")
    assert git_commit(tmp_path) == f"{clean}+dirty"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_commit(tmp_path) == "", "git is not installed"


def test_the_commit_is_that_of_the_working_folder_s_matrix(
    tmp_path: Path, kernels: dict[str, LoadedKernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --matrix it is ``matrix.yaml`` of the working folder, not of the folder above it."""
    farm = tmp_path / "farm"
    farm.mkdir()
    git(farm, "init", "-q")
    git(farm, "commit", "-q", "--allow-empty", "-m", "matrix")
    monkeypatch.chdir(farm)
    assert start(tmp_path / "out", kernels).manifest().planned.run.commit == git_commit(farm) != ""
