"""An adb server of our own and virtual phones on it, for any test that needs phones."""

import asyncio
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.errors import DeviceLost, InfraError
from workers.transports.adb import AdbDevice, AdbServer
from workers.transports.deadline import Deadline
from workers.virtual.faults import Fault
from workers.virtual.phone import VirtualPhone
from workers.virtual.profile import PhoneProfile, load_profile

_START_S = 30.0


def free_port() -> int:
    """A port that nothing listens on, outside those that an adb server adopts as emulators."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def own_adb_server(home: Path, port: int | None = None) -> Generator[AdbServer]:
    """A real adb server as our child, with its own keys; ended by its process id."""
    with adb_server_process(home, port) as (server, _):
        yield server


@contextmanager
def adb_server_process(home: Path, port: int | None = None) -> Generator[tuple[AdbServer, int]]:
    """The same with its process id."""
    adb = shutil.which("adb")
    assert adb is not None, "adb is not on PATH: apt install adb"
    server = AdbServer("127.0.0.1", port or free_port())
    home.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "HOME": str(home), "ADB_MDNS": "0"}
    with (home / "adb.log").open("ab") as log:
        process = subprocess.Popen(
            [adb, "-P", str(server.port), "nodaemon", "server"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        _wait_for(server, process, home / "adb.log")
        yield server, process.pid
    finally:
        process.terminate()
        process.wait(_START_S)


def _wait_for(server: AdbServer, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = Deadline.after(_START_S, f"{server}: start")
    while True:
        try:
            server.version()
            return
        except InfraError:
            assert process.poll() is None, log.read_text("utf-8", "replace")
            deadline.left()
            time.sleep(0.02)  # another process or thread changes it; the deadline bounds the wait


def process_runs(pid: int) -> bool:
    """False for one that has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def connect_again(server: AdbServer, serial: str) -> None:
    """Until the phone answers: a server may notice the end of the old link after it has said "connected"."""
    deadline = Deadline.after(_START_S, f"{serial}: connect")
    while True:
        server.disconnect_phone(serial)
        with suppress(DeviceLost):
            server.connect_phone(serial, deadline.left())
            if AdbDevice(server, serial).run(["true"], timeout_s=deadline.left()).exit_code == 0:
                return


@dataclass(frozen=True, slots=True)
class RunningPhone:
    """A virtual phone on a thread of its own, listed by an adb server."""

    phone: VirtualPhone
    server: AdbServer
    loop: asyncio.AbstractEventLoop

    @property
    def serial(self) -> str:
        """As adb lists it."""
        return self.phone.address

    def device(self) -> AdbDevice:
        return AdbDevice(self.server, self.serial)

    def connect(self) -> None:
        """List it (again), for example after a dropped link."""
        connect_again(self.server, self.serial)

    def fault(self, *faults: Fault | str) -> None:
        """These faults and no others from now on."""
        self.phone.faults.clear()
        for fault in faults:
            self.phone.faults.add(fault)

    def wait_for_boot(self, number: int) -> None:
        """Until the phone has come up for the ``number``-th time."""
        self._wait(lambda: self.phone.boots + 1 >= number and not self.phone.down, f"boot {number}")

    def wait_for_link(self) -> None:
        """Until an adb server holds a link to it."""
        self._wait(lambda: self.phone.links > 0, "a link")

    def _wait(self, done: Callable[[], bool], what: str) -> None:
        deadline = Deadline.after(_START_S, f"{self.serial}: {what}")
        while not done():
            deadline.left()
            time.sleep(0.02)  # another process or thread changes it; the deadline bounds the wait

    def call(self, job: Coroutine[Any, Any, None]) -> None:
        """Run something of the phone on its own loop."""
        asyncio.run_coroutine_threadsafe(job, self.loop).result(_START_S)


@contextmanager
def running_phone(
    server: AdbServer,
    profile: str | PhoneProfile,
    root: Path,
    faults: Iterable[Fault | str] = (),
    *,
    serial: str | None = None,
    connect: bool = True,
) -> Generator[RunningPhone]:
    """A virtual phone until the end of the block."""
    loaded = load_profile(profile) if isinstance(profile, str) else profile
    phone = VirtualPhone(loaded, root, faults, serial=serial)
    ready: threading.Event = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    stop = asyncio.Event()

    async def live() -> None:
        loops.append(asyncio.get_running_loop())
        async with phone:
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(live(),), name=f"phone-{loaded.name}")
    thread.start()
    assert ready.wait(_START_S), "the virtual phone did not start"
    running = RunningPhone(phone, server, loops[0])
    try:
        if connect:
            server.connect_phone(phone.address)
        yield running
    finally:
        with suppress(InfraError):
            server.disconnect_phone(phone.address)
        running.loop.call_soon_threadsafe(stop.set)
        thread.join(_START_S)
        assert not thread.is_alive(), "the virtual phone did not end"


@pytest.fixture(scope="session")
def adb_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[AdbServer]:
    """One server for all tests of a session; import it into a conftest.py."""
    with own_adb_server(tmp_path_factory.mktemp("adb-home")) as server:
        yield server


StartPhone = Callable[..., RunningPhone]


SWIFTSHADER = "/usr/lib/chromium/vk_swiftshader_icd.json"
"""Of Debian's chromium; the Vulkan loader finds it only when it is told."""


@pytest.fixture
def start_phone(
    adb_server: AdbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[StartPhone]:
    """``start_phone(profile, *faults, serial=…, connect=…)``: a phone until the end of the test.

    Vulkan runs under the validation layer there: any message of it is a failure.
    """
    monkeypatch.setenv("TILEFARM_VALIDATE", "1")
    with ExitStack() as stack:

        def start(
            profile: str | PhoneProfile = "snapdragon-8-gen-3",
            *faults: Fault | str,
            serial: str | None = None,
            connect: bool = True,
        ) -> RunningPhone:
            root = tmp_path / f"phone{len(list(tmp_path.iterdir()))}"
            phone = running_phone(adb_server, profile, root, faults, serial=serial, connect=connect)
            return stack.enter_context(phone)

        yield start
