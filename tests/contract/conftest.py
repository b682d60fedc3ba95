"""Every implementation of ``Device``: this machine, a modern phone and an old one on a real adb server."""

import uuid
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.phones import RunningPhone, running_phone
from tests.phones import adb_server as adb_server
from workers.transports.adb import AdbServer
from workers.transports.base import Device
from workers.transports.local import LocalDevice


@pytest.fixture(scope="session")
def modern_phone(adb_server: AdbServer, tmp_path_factory: pytest.TempPathFactory) -> Generator[RunningPhone]:
    with running_phone(adb_server, "snapdragon-8-gen-3", tmp_path_factory.mktemp("modern")) as phone:
        yield phone


@pytest.fixture(scope="session")
def old_phone(adb_server: AdbServer, tmp_path_factory: pytest.TempPathFactory) -> Generator[RunningPhone]:
    with running_phone(adb_server, "old-android", tmp_path_factory.mktemp("old")) as phone:
        yield phone


@pytest.fixture(params=["local", "adb", "adb-old"])
def device(request: pytest.FixtureRequest, tmp_path: Path) -> Device:
    if request.param == "local":
        return LocalDevice(tmp_path / "workdir")
    phone: RunningPhone = request.getfixturevalue("modern_phone" if request.param == "adb" else "old_phone")
    return phone.device()


@pytest.fixture
def folder(device: Device) -> str:
    """A folder on the device that no other test uses; not made yet."""
    return f"{device.workdir}/{uuid.uuid4().hex}"
