"""Where benchmarks run: a broker, a phone on a real adb server and the like, each ended with its block."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.domain.errors import InfraError
from workers.transports.adb import AdbServer
from workers.transports.deadline import Deadline

START_S = 60.0


@dataclass(frozen=True, slots=True)
class OwnServer:
    address: AdbServer
    pid: int


@contextmanager
def adb_server_process(folder: Path) -> Generator[OwnServer]:
    """A server of our own; ended by its process id."""
    adb = shutil.which("adb")
    if adb is None:
        raise SystemExit("adb is not on PATH. Install it: apt install adb")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        server = AdbServer("127.0.0.1", int(probe.getsockname()[1]))
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "HOME": str(folder), "ADB_MDNS": "0"}
    with (folder / "adb.log").open("wb") as log:
        process = subprocess.Popen(
            [adb, "-P", str(server.port), "nodaemon", "server"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        deadline = Deadline.after(START_S, f"{server}: start")
        while True:
            try:
                server.version()
                break
            except InfraError:
                deadline.left()
                time.sleep(0.05)  # it comes up in another process; the deadline bounds the wait
        yield OwnServer(server, process.pid)
    finally:
        process.terminate()
        process.wait(START_S)


@contextmanager
def adb_server(folder: Path) -> Generator[AdbServer]:
    """A server that this process and its children use until the end of the block."""
    before = os.environ.get("ANDROID_ADB_SERVER_PORT")
    with adb_server_process(folder) as server:
        os.environ["ANDROID_ADB_SERVER_PORT"] = str(server.address.port)
        try:
            yield server.address
        finally:
            if before is None:
                del os.environ["ANDROID_ADB_SERVER_PORT"]
            else:
                os.environ["ANDROID_ADB_SERVER_PORT"] = before


@contextmanager
def phone(server: AdbServer, profile: str, root: Path) -> Generator[str]:
    """A virtual phone in a process of its own; gives its serial."""
    process = subprocess.Popen(
        [sys.executable, "-m", "workers.virtual", profile, "--root", str(root)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        said = process.stdout.readline() if process.stdout else ""
        found = re.search(r"127\.0\.0\.1:\d+", said)
        if found is None:
            raise SystemExit(f"the virtual phone did not start: {said}")
        server.connect_phone(found[0], START_S)
        yield found[0]
        server.disconnect_phone(found[0])
    finally:
        process.terminate()
        process.wait(START_S)
