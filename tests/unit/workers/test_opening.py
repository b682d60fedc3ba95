"""From what was discovered to a bench: who the device is, and what it shares with others."""

from pathlib import Path

import pytest

from orchestrator.domain.errors import InfraError
from orchestrator.domain.settings import Settings
from tests.unit.workers import streams
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
LLVMPIPE = "llvmpipe (LLVM 15.0.6, 256 bits)"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    for preset in ("linux", "android-arm64-v8a"):
        runner(tmp_path / "build", preset)
    return Settings(runner_dir=tmp_path / "build", workdir=tmp_path / "work")


@pytest.fixture
def phone(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    """Whatever is opened, it is this device."""
    device = FakeDevice(props=dict(GALAXY))
    say(device, renderer="Adreno (TM) 750")

    def opened(*_arguments: object) -> FakeDevice:
        return device

    monkeypatch.setattr(opening, "AdbDevice", opened)
    monkeypatch.setattr(opening, "LocalDevice", opened)
    return device


def say(device: FakeDevice, **profile: object) -> None:
    device.probe_result = CommandResult(0, streams.whole(profile_line(**profile)))


def open_phone(settings: Settings) -> Bench:
    return open_bench(Reachable("adb", "192.168.1.5:5555"), settings)


def test_a_phone_is_who_it_says_and_not_how_adb_lists_it(phone: FakeDevice, settings: Settings) -> None:
    bench = open_phone(settings)
    record = bench.record
    assert (record.transport, record.name, record.soc.name) == ("adb", "Galaxy S24", "SM8650")
    assert (record.serial, record.virtual) == (phone.serial, False)
    assert record.os_build == GALAXY["ro.build.fingerprint"]
    assert set(record.device_id) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert phone.files[bench.runner] == b"\x7fELF android-arm64-v8a"
    assert record.resource == record.device_id, "it shares its GPU with nobody"


def test_the_machines_own_gpu(phone: FakeDevice, settings: Settings) -> None:
    phone.props = {"host.machine": "x86_64"}
    record = open_bench(Reachable("local", "local"), settings).record
    assert (record.transport, record.name) == ("local", "Adreno (TM) 750")
    assert record.resource == f"gpu@{record.host}"


def test_software_drivers_of_one_host_share_its_processor(phone: FakeDevice, settings: Settings) -> None:
    say(phone, renderer=LLVMPIPE)
    phone.props = {}
    local = open_bench(Reachable("local", "local"), settings).record
    phone.props = GALAXY | {"ro.tilefarm.virtual": "1"}
    virtual = open_phone(settings).record
    assert local.resource == virtual.resource == f"cpu@{local.host}"
    assert local.device_id != virtual.device_id


def test_a_virtual_phone_shares_the_real_gpu_of_its_host(phone: FakeDevice, settings: Settings) -> None:
    say(phone, renderer="NVIDIA H200/PCIe/SSE2")
    phone.props = {}
    local = open_bench(Reachable("local", "local"), settings).record
    phone.props = GALAXY | {"ro.tilefarm.virtual": "1"}
    virtual = open_phone(settings).record
    assert virtual.virtual
    assert virtual.resource == local.resource == f"gpu@{local.host}"


def test_a_probe_without_a_profile_opens_nothing(phone: FakeDevice, settings: Settings) -> None:
    phone.probe_result = CommandResult(0, streams.whole(streams.hello()))
    with pytest.raises(InfraError, match="printed no profile"):
        open_phone(settings)
