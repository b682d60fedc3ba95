"""From what was discovered to a bench: who the device is, and what it shares with others."""

from pathlib import Path

import pytest

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import InfraError
from orchestrator.domain.profile import Profile
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import from_json, to_json
from tests.unit.workers import gpus, streams
from tests.unit.workers.fake_device import FakeDevice
from tests.unit.workers.test_bench import profile_line, runner
from workers import opening
from workers.bench import Bench
from workers.discovery import Reachable
from workers.opening import open_bench
from workers.transports.base import CommandResult

GALAXY = {
    "ro.product.cpu.abi": "arm64-v8a",
    "ro.product.model": "Galaxy S24",
    "ro.serialno": "R5CX1234",
    "ro.soc.manufacturer": "QTI",
    "ro.soc.model": "SM8650",
    "ro.build.fingerprint": "samsung/e3q/e3q:14/UP1A/S928:user/release-keys",
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    for preset in ("linux", "android-arm64-v8a"):
        runner(tmp_path / "build", preset)
    return Settings(runner_dir=tmp_path / "build", workdir=tmp_path / "work")


@pytest.fixture
def phone(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    """Whatever phone is opened, it is this device."""
    device = FakeDevice(props=dict(GALAXY))
    say(device, gpus.gles("Adreno (TM) 750"))

    def opened(*_arguments: object) -> FakeDevice:
        return device

    monkeypatch.setattr(opening, "AdbDevice", opened)
    return device


def say(device: FakeDevice, *profiles: Profile) -> None:
    """Let the probe find these."""
    lines = [
        profile_line(
            api=p.api,
            renderer=p.renderer,
            library=p.library,
            adapter=p.adapter,
            device_type=p.device_type,
            driver=p.driver,
        )
        for p in profiles
    ]
    device.probe_result = CommandResult(0, streams.whole(*lines))


def open_phone(settings: Settings) -> Bench:
    return open_bench(Reachable("adb", "192.168.1.5:5555"), settings)


def open_local(settings: Settings, *profiles: Profile) -> DeviceRecord:
    return open_bench(gpus.reachable(*profiles), settings).record


def test_a_phone_is_who_it_says_and_not_how_adb_lists_it(phone: FakeDevice, settings: Settings) -> None:
    bench = open_phone(settings)
    record = bench.record
    assert (record.transport, record.name, record.soc.name) == ("adb", "Galaxy S24", "SM8650")
    assert (record.serial, record.virtual) == (phone.serial, False)
    assert record.os_build == GALAXY["ro.build.fingerprint"]
    assert set(record.device_id) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert phone.files[bench.runner] == b"\x7fELF android-arm64-v8a"
    assert record.resource == record.device_id, "it shares its GPU with nobody"


def test_a_phone_is_one_device_for_both_apis(phone: FakeDevice, settings: Settings) -> None:
    adreno = gpus.vulkan("Adreno (TM) 750", "8-1", kind="integrated")
    say(phone, gpus.gles("Adreno (TM) 750"), gpus.vulkan(), adreno)
    record = open_phone(settings).record
    assert [(p.api, p.adapter) for p in record.profiles] == [("gles", ""), ("vulkan", "8-1")]
    assert record.soc.name == "SM8650"


def test_a_gpu_of_this_machine(settings: Settings) -> None:
    bench = open_bench(gpus.reachable(gpus.H200_GLES, gpus.h200()), settings)
    record = bench.record
    assert (record.transport, record.serial) == ("local", "local:NVIDIA-H200")
    assert (record.name, record.soc.name) == ("NVIDIA H200", "NVIDIA-H200")
    assert record.device_id.endswith("-nvidia-h200")
    assert record.resource == f"gpu@{record.host}:NVIDIA-H200"
    assert [p.api for p in record.profiles] == ["gles", "vulkan"]
    assert Path(bench.runner).read_bytes() == b"\x7fELF linux"


def test_gpus_of_one_machine_do_not_touch_each_others_job_folders(settings: Settings) -> None:
    one = open_bench(gpus.reachable(gpus.gles()), settings)
    other = open_bench(gpus.reachable(gpus.vulkan()), settings)
    assert one.device.workdir != other.device.workdir
    assert one.record.device_id != other.record.device_id


def test_software_drivers_of_one_host_share_its_processor(phone: FakeDevice, settings: Settings) -> None:
    phone.props = GALAXY | {"ro.tilefarm.virtual": "1"}
    say(phone, gpus.gles(), gpus.vulkan())
    records = [
        open_local(settings, gpus.gles()),
        open_local(settings, gpus.vulkan()),
        open_local(settings, gpus.SWIFTSHADER),
        open_phone(settings).record,
    ]
    assert {r.resource for r in records} == {f"cpu@{records[0].host}"}
    assert len({r.device_id for r in records}) == 4


def test_a_virtual_phone_shares_the_real_gpu_of_its_host(phone: FakeDevice, settings: Settings) -> None:
    local = open_local(settings, gpus.H200_GLES, gpus.h200())
    phone.props = GALAXY | {"ro.tilefarm.virtual": "1"}
    say(phone, gpus.H200_GLES, gpus.vulkan())
    virtual = open_phone(settings).record
    assert virtual.virtual
    assert virtual.resource == local.resource


def test_a_probe_without_a_profile_opens_nothing(phone: FakeDevice, settings: Settings) -> None:
    phone.probe_result = CommandResult(0, streams.whole(streams.hello()))
    with pytest.raises(InfraError, match="printed no profile"):
        open_phone(settings)


def test_g1_24_driver_and_library_of_each_api_are_stored(phone: FakeDevice, settings: Settings) -> None:
    """G1-24: which driver was really loaded, with name, id, version and path, is kept with the run."""
    turnip = gpus.vulkan("Turnip Adreno (TM) 750", "18-1", kind="integrated")
    say(phone, gpus.gles("Adreno (TM) 750"), turnip)
    record = open_phone(settings).record
    kept = from_json(DeviceRecord, to_json(record), "results.json")
    facts = {p.api: (p.renderer, p.library, p.driver.get("id", "")) for p in kept.profiles}
    assert facts == {
        "gles": ("Adreno (TM) 750", "/usr/lib/Adre-gles.so", ""),
        "vulkan": ("Turnip Adreno (TM) 750", "/usr/lib/Turn-vulkan.so", "18"),
    }
    assert set(kept.profiles[1].driver) == {"id", "name", "info", "conformance"}
    assert kept.os_build == GALAXY["ro.build.fingerprint"]
