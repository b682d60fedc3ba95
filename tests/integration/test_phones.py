"""The main job over a real adb server: virtual phones beside this machine's own GPU."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.results import RunResults
from orchestrator.domain.verdict import Verdict
from tests.farm import Farm, wait_for
from tests.phones import SWIFTSHADER, RunningPhone, StartPhone
from workers.transports.adb import AdbServer
from workers.virtual.profile import Feature, load_profile

MATRIX = """
version: 1
suites:
  smoke:
    repeats: 2
    blocks:
      - kernel: attention_flash
        workloads: [{seq: 33, head_dim: 8, heads: 2, causal: true}]
        axes: {api: [gles, vulkan], precision: [fp32, fp16_storage], tile: 8x8}
      - kernel: attention_flash
        workloads: [{seq: 33, head_dim: 128, heads: 1}]
        axes: {api: [gles, vulkan], precision: [fp32, fp16_storage], tile: 32x32, vector: 1}
"""
CASES = 4
"""Through each API."""
FP16 = """
version: 1
suites:
  smoke:
    repeats: 2
    blocks:
      - kernel: attention_flash
        workloads: [{seq: 33, head_dim: 8, heads: 1}]
        axes: {api: vulkan, precision: [fp32, fp16], tile: 8x8}
"""


@pytest.fixture
def phones(farm: Farm, adb_server: AdbServer) -> Farm:
    farm.environment |= {"ANDROID_ADB_SERVER_PORT": str(adb_server.port), "TILEFARM_VALIDATE": "1"}
    return farm


@pytest.fixture
def matrix(farm: Farm) -> str:
    path = farm.folder / "matrix.yaml"
    path.write_text(MATRIX)
    return str(path)


def by_soc(results: RunResults, soc: str) -> dict[str, Verdict]:
    ids = {d.device_id for d in results.devices if d.soc.name == soc}
    return {t.case_id: t.verdict for t in results.trials if t.device_id in ids}


def phone_in(results: RunResults) -> DeviceRecord:
    return next(d for d in results.devices if d.transport == "adb")


def reasons(results: RunResults) -> set[str]:
    phone = phone_in(results).device_id
    return {reason for p in results.pruned if p.device_id == phone for reason in p.reasons}


def test_this_machines_drivers_and_a_phone_in_one_run(
    phones: Farm, matrix: str, start_phone: StartPhone
) -> None:
    """Each software driver is a device of its own; the phone is one device with both APIs."""
    start_phone("snapdragon-8-gen-3")
    phones.run("run", "--matrix", matrix)
    results = phones.latest()
    assert {d.transport for d in results.devices} == {"local", "adb"}
    assert len({d.resource for d in results.devices}) == 1
    assert len(by_soc(results, "llvmpipe")) == len(by_soc(results, "lavapipe")) == CASES
    assert len(by_soc(results, "SM8650")) == 2 * CASES
    assert {t.verdict for t in results.trials} == {Verdict.PASS}
    hashes: dict[str, set[str]] = {}
    for trial in results.trials:
        hashes.setdefault(trial.case_id, set()).add(trial.outputs[0].hash)
    assert all(len(found) == 1 for found in hashes.values())
    latest = phones.out / "latest"
    page = (latest / "soc-SM8650.html").read_text()
    assert "virtual phone" in page
    assert (latest / "soc-llvmpipe.html").exists()
    assert (latest / "soc-lavapipe.html").exists()


def test_a_small_phone_prunes_by_its_limits_in_both_apis(
    phones: Farm, matrix: str, start_phone: StartPhone
) -> None:
    start_phone("mid-mali")
    phones.run("run", "--matrix", matrix, "--device", "MT6763")
    results = phones.latest()
    assert reasons(results) == {"shared_bytes 32768 > 16384"}
    assert {p.limits["shared_bytes"] for p in phone_in(results).profiles} == {16384}
    assert {p.limits["invocations"] for p in phone_in(results).profiles} == {128}
    assert len(results.trials) == 2 * CASES - len(results.pruned)
    assert {t.verdict for t in results.trials} == {Verdict.PASS}


def test_a_phone_borrows_swiftshader_where_the_loader_finds_it(
    phones: Farm, start_phone: StartPhone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VK_ADD_DRIVER_FILES", SWIFTSHADER)
    start_phone("mid-mali")
    path = phones.folder / "fp16.yaml"
    path.write_text(FP16)
    phones.run("run", "--matrix", str(path), "--device", "MT6763")
    results = phones.latest()
    vulkan = phone_in(results).profile("vulkan")
    assert vulkan is not None
    assert "SwiftShader" in vulkan.renderer
    assert vulkan.subgroup.measured == 4
    assert reasons(results) == {"lacks float16"}
    assert [t.verdict for t in results.trials] == [Verdict.PASS]
    assert "SwiftShader" in results.trials[0].driver


@pytest.mark.parametrize(
    ("without", "left"),
    [
        (["storage16", "uniform16", "push16", "io16"], {"float16"}),
        (["float16", "uniform16", "push16", "io16"], {"storage16"}),
    ],
)
def test_g1_23_a_phone_with_arithmetic_or_storage_only(
    phones: Farm, start_phone: StartPhone, without: list[Feature], left: set[str]
) -> None:
    """G1-23: what is missing is told by its own name, and what is there is used without it."""
    base = load_profile("snapdragon-8-gen-3")
    start_phone(base.model_copy(update={"gpu": base.gpu.model_copy(update={"without": without})}))
    path = phones.folder / "fp16.yaml"
    path.write_text(FP16)
    phones.run("run", "--matrix", str(path), "--device", "SM8650")
    results = phones.latest()
    vulkan = phone_in(results).profile("vulkan")
    assert vulkan is not None
    sixteen = {"float16", "storage16", "uniform16", "push16", "io16"}
    assert {name for name in sixteen if vulkan.features.get(name)} == left
    assert reasons(results) == (set() if "float16" in left else {"lacks float16"})
    assert {t.verdict for t in results.trials} == {Verdict.PASS}


def test_an_old_phone_works_without_vulkan(phones: Farm, matrix: str, start_phone: StartPhone) -> None:
    phone = start_phone("old-android")
    phones.run("run", "--matrix", matrix, "--device", phone.serial)
    results = phones.latest()
    assert {t.verdict for t in results.trials} == {Verdict.PASS}
    assert "lacks api vulkan" in reasons(results)
    assert [p.api for p in phone_in(results).profiles] == ["gles"]


def test_a_phone_that_refuses_us_is_missing_not_wrong(
    phones: Farm, matrix: str, start_phone: StartPhone, adb_server: AdbServer
) -> None:
    phone = start_phone("snapdragon-8-gen-3", "unauthorized", connect=False)
    command = ["adb", "-P", str(adb_server.port), "connect", phone.serial]
    subprocess.run(command, check=False, capture_output=True, timeout=60)
    wait_for(lambda: "unauthorized" in adb_server.list_text(), "the listing")
    done = phones.run("run", "--matrix", matrix, "-k", "head_dim=128 and api=gles", expect=3)
    assert "accept this host's key" in done.stderr
    results = phones.latest()
    assert len(results.missing) == 1
    assert {t.verdict for t in results.trials} == {Verdict.PASS}


def test_a_link_that_drops_once_costs_a_retry(phones: Farm, matrix: str, start_phone: StartPhone) -> None:
    phone = start_phone("snapdragon-8-gen-3")
    phone.fault('drop:on=tilefarm-runner.* run,after_text="end",times=1')
    run = phones.start("run", "--matrix", matrix, "--device", phone.serial, "-k", "head_dim=8")
    _keep_connected(phone, lambda: run.poll() is not None)
    assert run.returncode == 0, (phones.folder / "background.log").read_text()
    trials = phones.latest().trials
    assert len(trials) == CASES
    assert {t.verdict for t in trials} == {Verdict.PASS}
    assert 2 in {t.attempt for t in trials}


def _keep_connected(phone: RunningPhone, done: Callable[[], bool]) -> None:
    """As a host does whose phone comes back on the network."""

    def over() -> bool:
        if phone.phone.links == 0:
            phone.connect()
        return done()

    wait_for(over, "the run's end")


def test_hostile_names_stay_text(phones: Farm, matrix: str, start_phone: StartPhone, tmp_path: Path) -> None:
    source = Path("workers/virtual/profiles/snapdragon-8-gen-3.yaml").read_text()
    evil = "<script>alert(1)</script>\\e[31m\\u202Eevil"
    lines = [
        f'  ro.product.model: "{evil}"' if line.strip().startswith("ro.product.model:") else line
        for line in source.splitlines()
    ]
    profile = tmp_path / "evil.yaml"
    profile.write_text("\n".join(lines) + "\n")
    phone = start_phone(str(profile))
    phones.run("run", "--matrix", matrix, "--device", phone.serial, "-k", "head_dim=128 and api=gles")
    page = (phones.out / "latest" / "soc-SM8650.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\x1b" not in page
    assert "\u202e" not in page
