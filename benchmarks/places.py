"""Where benchmarks run: a broker, a phone on a real adb server and the like, each ended with its block."""

import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.phones import own_adb_server
from workers.transports.adb import AdbServer

START_S = 60.0


@contextmanager
def adb_server(folder: Path) -> Generator[AdbServer]:
    """A server that this process and its children use until the end of the block."""
    before = os.environ.get("ANDROID_ADB_SERVER_PORT")
    with own_adb_server(folder) as server:
        os.environ["ANDROID_ADB_SERVER_PORT"] = str(server.port)
        try:
            yield server
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
