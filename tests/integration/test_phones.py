"""The main job over a real adb server: virtual phones beside this machine's own GPU."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.domain.results import RunResults
from orchestrator.domain.verdict import Verdict
from tests.farm import Farm, wait_for
from tests.phones import RunningPhone, StartPhone
from workers.transports.adb import AdbServer

MATRIX = """
version: 1
suites:
  smoke:
    repeats: 2
    blocks:
      - kernel: attention_flash
        workloads: [{seq: 33, head_dim: 64, heads: 2, causal: [false, true]}]
        axes: {precision: [fp32, fp16_storage], tile: [16x16, 32x32]}
      - kernel: attention_flash
        workloads: [{seq: 33, head_dim: 128, heads: 1}]
        axes: {precision: [fp32, fp16_storage], tile: 32x32, vector: 1}
"""
CASES = 10


@pytest.fixture
def phones(farm: Farm, adb_server: AdbServer) -> Farm:
    farm.environment["ANDROID_ADB_SERVER_PORT"] = str(adb_server.port)
    return farm


@pytest.fixture
def matrix(farm: Farm) -> str:
    path = farm.folder / "matrix.yaml"
    path.write_text(MATRIX)
    return str(path)


def by_soc(results: RunResults, soc: str) -> dict[str, Verdict]:
    ids = {d.device_id for d in results.devices if d.soc.name == soc}
    return {t.case_id: t.verdict for t in results.trials if t.device_id in ids}


def test_local_and_phone_in_one_run(phones: Farm, matrix: str, start_phone: StartPhone) -> None:
    start_phone("snapdragon-8-gen-3")
    phones.run("run", "--matrix", matrix)
    results = phones.latest()
    assert {d.transport for d in results.devices} == {"local", "adb"}
    assert len({d.resource for d in results.devices}) == 1
    assert len(by_soc(results, "llvmpipe")) == CASES
    assert len(by_soc(results, "SM8650")) == CASES
    assert {t.verdict for t in results.trials} == {Verdict.PASS}
    hashes: dict[str, set[str]] = {}
    for trial in results.trials:
        hashes.setdefault(trial.case_id, set()).add(trial.outputs[0].hash)
    assert all(len(found) == 1 for found in hashes.values())
    latest = phones.out / "latest"
    page = (latest / "soc-SM8650.html").read_text()
    assert "virtual phone" in page
    assert (latest / "soc-llvmpipe.html").exists()


def test_a_small_phone_prunes_by_its_limits(phones: Farm, matrix: str, start_phone: StartPhone) -> None:
    start_phone("mid-mali")
    phones.run("run", "--matrix", matrix, "--device", "MT6763")
    results = phones.latest()
    reasons = {reason for p in results.pruned for reason in p.reasons}
    assert reasons == {"shared_bytes 32768 > 16384"}
    assert len(results.trials) == CASES - len(results.pruned)
    assert {t.verdict for t in results.trials} == {Verdict.PASS}


def test_an_old_phone_works(phones: Farm, matrix: str, start_phone: StartPhone) -> None:
    phone = start_phone("old-android")
    phones.run("run", "--matrix", matrix, "--device", phone.serial)
    assert {t.verdict for t in phones.latest().trials} == {Verdict.PASS}


def test_a_phone_that_refuses_us_is_missing_not_wrong(
    phones: Farm, matrix: str, start_phone: StartPhone, adb_server: AdbServer
) -> None:
    phone = start_phone("snapdragon-8-gen-3", "unauthorized", connect=False)
    command = ["adb", "-P", str(adb_server.port), "connect", phone.serial]
    subprocess.run(command, check=False, capture_output=True, timeout=60)
    wait_for(lambda: "unauthorized" in adb_server.list_text(), "the listing")
    done = phones.run("run", "--matrix", matrix, "-k", "head_dim=128", expect=3)
    assert "accept this host's key" in done.stderr
    results = phones.latest()
    assert len(results.missing) == 1
    assert {t.verdict for t in results.trials} == {Verdict.PASS}


def test_a_link_that_drops_once_costs_a_retry(phones: Farm, matrix: str, start_phone: StartPhone) -> None:
    phone = start_phone("snapdragon-8-gen-3")
    phone.fault('drop:on=tilefarm-runner.* run,after_text="end",times=1')
    run = phones.start("run", "--matrix", matrix, "--device", phone.serial)
    _keep_connected(phone, lambda: run.poll() is not None)
    assert run.returncode == 0, (phones.folder / "background.log").read_text()
    trials = phones.latest().trials
    assert len(trials) == CASES
    assert {t.verdict for t in trials} == {Verdict.PASS}
    assert {t.attempt for t in trials} == {2}


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
    phones.run("run", "--matrix", matrix, "--device", phone.serial, "-k", "head_dim=128")
    page = (phones.out / "latest" / "soc-SM8650.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\x1b" not in page
    assert "\u202e" not in page
