"""Open a device: from what was discovered to a bench that can run batches, with every fact recorded."""

from collections.abc import Sequence

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.device_check import presentable
from orchestrator.domain.errors import InfraError
from orchestrator.domain.profile import Profile
from orchestrator.domain.settings import Settings
from workers.bench import CALL_TIMEOUT_S, Bench, install_runner, probe, runner_build
from workers.discovery import Reachable, host_name
from workers.health import read_health
from workers.identity import is_virtual, local_id, local_soc, os_build, phone_id, phone_soc
from workers.local_gpus import LocalGpu, of_phone
from workers.transports.adb import AdbDevice
from workers.transports.adb_server import server_address
from workers.transports.local import LocalDevice


def open_bench(found: Reachable, settings: Settings) -> Bench:
    """Install the runner, probe the GPU unless that was done, and record who the device is.

    Raises:
        InfraError: it does not answer, or has no GPU driver.
        NotInstalled: there is no runner for it; says how to build one.
    """
    if found.gpu is not None:
        return _open_local(found.gpu, found.serial, settings)
    return _open_phone(AdbDevice(server_address(), found.serial), settings)


def _open_local(gpu: LocalGpu, serial: str, settings: Settings) -> Bench:
    """Each GPU has a folder of its own: workers clear the job folders that they find in theirs."""
    device = LocalDevice(settings.workdir / "local" / gpu.name, serial)
    properties = device.properties(timeout_s=CALL_TIMEOUT_S)
    host = host_name()
    record = DeviceRecord(
        device_id=local_id(host, gpu.name),
        transport="local",
        serial=serial,
        name=gpu.title,
        soc=gpu.soc,
        profiles=list(gpu.profiles),
        resource=f"cpu@{host}" if gpu.software else _gpu_resource(host, gpu.name),
        host=host,
        os_build=os_build(properties),
    )
    runner = install_runner(device, runner_build(properties, settings.runner_dir))
    return Bench(device, record, runner, blob_quota=settings.blob_quota)


def _open_phone(device: AdbDevice, settings: Settings) -> Bench:
    properties = device.properties(timeout_s=CALL_TIMEOUT_S)
    runner = install_runner(device, runner_build(properties, settings.runner_dir))
    profiles = of_phone(probe(device, runner))
    if not profiles:
        raise InfraError(f"{device.serial}: the runner's probe printed no profile; run `tilefarm doctor`")
    host = host_name()
    device_id = phone_id(properties)
    virtual = is_virtual(properties)
    record = DeviceRecord(
        device_id=device_id,
        transport="adb",
        serial=device.serial,
        name=properties.get("ro.product.model", device.serial),
        soc=phone_soc(properties, profiles[0].renderer),
        profiles=profiles,
        resource=_borrowed(profiles, host) if virtual else device_id,
        host=host,
        os_build=os_build(properties),
        virtual=virtual,
        health=read_health(device, CALL_TIMEOUT_S),
    )
    return Bench(device, presentable(record), runner, blob_quota=settings.blob_quota)


def _borrowed(profiles: Sequence[Profile], host: str) -> str:
    """What a virtual phone runs on: this host's first GPU, as EGL chooses it, if it has one."""
    hardware = [p for p in profiles if not p.software]
    return _gpu_resource(host, local_soc(hardware[-1]).name) if hardware else f"cpu@{host}"


def _gpu_resource(host: str, gpu: str) -> str:
    """Two APIs of one GPU share it."""
    return f"gpu@{host}:{gpu}"
