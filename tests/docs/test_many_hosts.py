"""README's section on many hosts, as written: each block in a shell of its own, agents on two hosts.

A host is a host name here: the agents' shells have one each (a UTS namespace), and an adb server.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.execution.broker import Broker
from tests.docs.pages import blocks_of
from tests.farm import REPOSITORY, Farm, wait_for
from tests.phones import free_port, own_adb_server

HOSTS = ("shelf-1", "shelf-2")


def section() -> str:
    found = re.search(r"^## Many hosts\n(.*?)(?=^## )", (REPOSITORY / "README.md").read_text(), re.M | re.S)
    assert found
    return found[1]


@contextmanager
def shell(script: str, farm: Farm, log: str, host: str = "", adb_port: int = 0) -> Generator[None]:
    """Until a person presses Ctrl-C there; the program has to end well."""
    words = ["bash", "-euo", "pipefail", "-c", script]
    if host:
        root = [] if os.geteuid() == 0 else ["--map-root-user"]
        words = ["unshare", "--uts", *root, "sh", "-c", 'hostname "$0" && exec "$@"', host, *words]
    path = farm.folder / f"{log}.log"
    with path.open("wb") as output:
        process = subprocess.Popen(
            words,
            cwd=farm.folder,
            env=environment(farm) | ({"ANDROID_ADB_SERVER_PORT": str(adb_port)} if adb_port else {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(120) == 0, path.read_text()


def environment(farm: Farm) -> dict[str, str]:
    """Of all shells; a wheel may have brought an old redis-server, so that .venv comes last."""
    path = f"{os.environ['PATH']}{os.pathsep}{Path(sys.executable).parent}"
    return farm.env() | {"PATH": path, "HOME": str(farm.folder)}


def hosts_that_serve(url: str) -> set[str]:
    try:
        broker = Broker(url)
    except BrokerUnavailable:
        return set()
    try:
        return {r.record.host for r in broker.registrations().values()}
    finally:
        broker.close()


def test_many_hosts_as_written(farm: Farm) -> None:
    start_broker, start_agent, run = blocks_of(section(), "shell")
    port = free_port()
    url = f"redis://127.0.0.1:{port}/0"
    farm.environment["PORT"] = str(port)
    for name in ("kernels", "matrix.yaml"):
        (farm.folder / name).symlink_to(REPOSITORY / name)
    with ExitStack() as stack:
        stack.enter_context(shell(start_broker, farm, "broker"))
        for host in HOSTS:
            server = stack.enter_context(own_adb_server(farm.folder / f"adb-{host}"))
            stack.enter_context(shell(start_agent, farm, host, host, server.port))
        wait_for(lambda: hosts_that_serve(url) == set(HOSTS), "a worker on each host")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", run],
            cwd=farm.folder,
            env=environment(farm),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    results = farm.latest()
    hosts = {d.device_id: d.host for d in results.devices}
    assert {hosts[t.device_id] for t in results.trials} == set(HOSTS)
    assert {t.verdict for t in results.trials} == {"pass"}
