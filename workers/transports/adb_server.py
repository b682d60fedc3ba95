"""Which adb server this process talks to, and starting one: nothing else here ever starts a server."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress

from orchestrator.domain.errors import InfraError, NotInstalled, UsageError
from workers.transports.adb import DEFAULT_PORT, AdbServer

_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")


def server_address(environ: Mapping[str, str] = os.environ) -> AdbServer:
    """Where the adb server is, from the variables that adb itself reads.

    Raises:
        UsageError: a value that cannot be used.
    """
    spec = environ.get("ADB_SERVER_SOCKET", "")
    if spec:
        kind, _, rest = spec.partition(":")
        host, _, port = rest.rpartition(":")
        if kind != "tcp" or not port.isdigit():
            raise UsageError(f"ADB_SERVER_SOCKET={spec!r}: expected tcp:PORT or tcp:HOST:PORT")
        return AdbServer(host or "127.0.0.1", int(port))
    port = environ.get("ANDROID_ADB_SERVER_PORT", "") or str(DEFAULT_PORT)
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"ANDROID_ADB_SERVER_PORT={port!r}: expected a port number")
    return AdbServer(environ.get("ANDROID_ADB_SERVER_ADDRESS", "") or "127.0.0.1", int(port))


def connect_server() -> AdbServer:
    """The server that the environment names, proven to answer; never starts one.

    Raises:
        InfraError: none answers; says what to do.
    """
    server = server_address()
    server.version()
    return server


def start_server(server: AdbServer, timeout_s: float = 20.0) -> AdbServer:
    """Start a server with the adb on PATH, unless one answers already. It outlives this process.

    Raises:
        NotInstalled: none answers, and there is no adb on PATH.
        InfraError: it did not start; carries adb's words.
    """
    with suppress(InfraError):
        server.version()
        return server
    adb = shutil.which("adb")
    if adb is None:
        raise NotInstalled(
            f"{server}: none answers, and to start one adb is not on PATH. Install it: apt install adb; from "
            "a container the host's server is used: adb start-server there"
        )
    if server.host not in _THIS_MACHINE:
        raise InfraError(f"{server}: none answers, and it is not on this machine. Start it there.")
    try:
        done = subprocess.run(
            [adb, "-P", str(server.port), "start-server"],
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as e:
        raise InfraError(f"{server}: adb start-server did not end in {timeout_s:g} s") from e
    except OSError as e:  # it is being upgraded, say
        raise InfraError(f"{adb}: {e.strerror or e}") from e
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise InfraError(f"{server}: adb start-server failed ({done.returncode}): {said}")
    server.version()
    return server
