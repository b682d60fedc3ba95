"""Open a device: from what was discovered to a bench that can run batches, with every fact recorded."""

import platform

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import InfraError
from orchestrator.domain.profile import Profile
from orchestrator.domain.settings import Settings
from workers.bench import CALL_TIMEOUT_S, Bench, install_runner, probe, runner_build
from workers.discovery import Reachable
from workers.health import read_health
from workers.identity import is_virtual, local_id, local_soc, os_build, phone_id, phone_soc
from workers.transports.adb import AdbDevice, server_address
from workers.transports.base import Device
from workers.transports.local import LocalDevice


def open_bench(found: Reachable, settings: Settings) -> Bench:
    """Install the runner, probe the GPU, and record who the device is.

    Raises:
        InfraError: it does not answer, or has no GPU driver.
        NotInstalled: there is no runner for it; says how to build one.
    """
    match found.transport:
        case "local":
            return _open_local(LocalDevice(settings.workdir / "local"), settings)
        case "adb":
            return _open_phone(AdbDevice(server_address(), found.serial), settings)


def _open_local(device: LocalDevice, settings: Settings) -> Bench:
    runner, profiles = _runner_and_profiles(device, settings)
    renderer = profiles[0].renderer
    host = platform.node() or "localhost"
    record = DeviceRecord(
        device_id=local_id(host),
        transport="local",
        serial=device.serial,
        name=renderer,
        soc=local_soc(renderer),
        profiles=profiles,
        resource=_resource(profiles[0], f"gpu@{host}", host),
        host=host,
        os_build=os_build(device.properties(timeout_s=CALL_TIMEOUT_S)),
    )
    return Bench(device, record, runner)


def _open_phone(device: AdbDevice, settings: Settings) -> Bench:
    runner, profiles = _runner_and_profiles(device, settings)
    properties = device.properties(timeout_s=CALL_TIMEOUT_S)
    renderer = profiles[0].renderer
    host = platform.node() or "localhost"
    device_id = phone_id(properties)
    virtual = is_virtual(properties)
    record = DeviceRecord(
        device_id=device_id,
        transport="adb",
        serial=device.serial,
        name=properties.get("ro.product.model", device.serial),
        soc=phone_soc(properties, renderer),
        profiles=profiles,
        resource=_resource(profiles[0], f"gpu@{host}" if virtual else device_id, host),
        host=host,
        os_build=os_build(properties),
        virtual=virtual,
        health=read_health(device, CALL_TIMEOUT_S),
    )
    return Bench(device, record, runner)


def _runner_and_profiles(device: Device, settings: Settings) -> tuple[str, list[Profile]]:
    properties = device.properties(timeout_s=CALL_TIMEOUT_S)
    runner = install_runner(device, runner_build(properties, settings.runner_dir))
    profiles = probe(device, runner)
    if not profiles:
        raise InfraError(f"{device.serial}: the runner's probe printed no profile; run `tilefarm doctor`")
    return runner, profiles


def _resource(profile: Profile, own: str, host: str) -> str:
    """What trials on this device compete for."""
    return f"cpu@{host}" if profile.software else own
