"""The private server: there at once, alone on its socket, and gone with its owner, however that one ends."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from orchestrator.domain.errors import BrokerUnavailable, NotInstalled
from orchestrator.execution import private_redis as module
from orchestrator.execution.private_redis import private_redis, redis_server_program
from orchestrator.storage.redis_client import connect

OWNER = """
import sys
from orchestrator.execution.private_redis import private_redis
with private_redis() as url:
    print(url, flush=True)
    sys.stdin.read()
"""


def server_of(url: str, parent: int) -> psutil.Process:
    """The child of ``parent`` that listens on the URL's socket."""
    path = url.removeprefix("redis+socket://")
    children = psutil.Process(parent).children()
    (server,) = [p for p in children if path in {c.laddr for c in p.net_connections("unix")}]
    return server


def test_it_answers_on_a_socket_and_takes_no_port() -> None:
    with private_redis() as url:
        assert url.startswith("redis+socket:///")
        client = connect(url)
        assert client.ping()
        assert server_of(url, os.getpid()).net_connections("inet") == []
        client.close()


def test_two_do_not_see_each_other() -> None:
    with private_redis() as one, private_redis() as two:
        first, second = connect(one), connect(two)
        first.set("key", "value", ex=100)
        assert second.get("key") is None
        first.close()
        second.close()


@pytest.mark.parametrize("fails", [True, False])
def test_it_is_gone_afterwards_with_its_folder(fails: bool) -> None:
    seen: list[tuple[psutil.Process, Path]] = []

    def use() -> None:
        with private_redis() as url:
            seen.append((server_of(url, os.getpid()), Path(url.removeprefix("redis+socket://")).parent))
            if fails:
                raise ValueError("inside")

    with suppress(ValueError):
        use()
    server, folder = seen[0]
    assert not server.is_running()
    assert not folder.exists()


def test_it_dies_with_an_owner_that_was_killed(tmp_path: Path) -> None:
    """kill -9 of `tilefarm run` leaves no server behind."""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as owner:
        assert owner.stdout is not None
        server = server_of(owner.stdout.readline().decode().strip(), owner.pid)
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
    try:
        server.wait(timeout=30)
    finally:
        with suppress(psutil.NoSuchProcess):
            server.kill()  # only a broken product leaves it to us


def program(folder: Path, text: str) -> Path:
    path = folder / "redis-server"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def start_with(monkeypatch: pytest.MonkeyPatch, path: Path) -> Callable[[], None]:
    def found() -> str:
        return str(path)

    def start() -> None:
        with private_redis():
            raise AssertionError("it did start")

    monkeypatch.setattr(module, "redis_server_program", found)
    return start


def test_a_server_that_dies_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = start_with(monkeypatch, program(tmp_path, "echo 'FATAL: out of file descriptors'; exit 1"))
    with pytest.raises(BrokerUnavailable, match="did not start: FATAL: out of file descriptors"):
        start()


def test_a_socket_that_nobody_listens_on_yet_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between bind() and listen() the socket is there and refuses."""
    real = shutil.which("redis-server")
    bind = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
    early = f"{sys.executable} -c '{bind}' $4; sleep 0.2; rm $4; exec {real} \"$@\""
    path = program(tmp_path, early)
    monkeypatch.setattr(module, "redis_server_program", lambda: str(path))
    with private_redis() as url:
        client = connect(url)
        assert client.ping()
        client.close()


def nothing(_name: str) -> None:
    return None


def test_without_any_server_the_message_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.shutil, "which", nothing)
    monkeypatch.setattr(module.importlib.util, "find_spec", nothing)
    with pytest.raises(NotInstalled, match="apt install redis-server"):
        redis_server_program()


def test_the_wheels_server_is_used_where_none_is_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Spec:
        origin = str(tmp_path / "__init__.py")

    (tmp_path / "bin").mkdir()
    inside = program(tmp_path / "bin", "exit 0")

    def found(_name: str) -> type[Spec]:
        return Spec

    monkeypatch.setattr(module.shutil, "which", nothing)
    monkeypatch.setattr(module.importlib.util, "find_spec", found)
    assert redis_server_program() == str(inside)
