"""Locks between real processes: one holder at a time, and none after its death, however it died."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.domain.errors import InfraError
from workers.locks import exclusive, lock_folder

HOLDER = """
import sys
from pathlib import Path
from workers.locks import exclusive
with exclusive(sys.argv[1], timeout_s=30, folder=Path(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
print("released", flush=True)
"""


@contextmanager
def another_process(name: str, folder: Path) -> Generator[subprocess.Popen[str]]:
    """Holds the lock until its stdin is closed."""
    command = [sys.executable, "-c", HOLDER, name, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        try:
            yield holder
        finally:
            if holder.poll() is None:
                holder.kill()


def wait_until_held(holder: subprocess.Popen[str]) -> None:
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"


def give_up(_seconds: float) -> None:
    raise AssertionError("the lock was not free")


def test_a_lock_that_another_process_holds_is_waited_for(tmp_path: Path) -> None:
    with another_process("device-a", tmp_path) as holder:
        wait_until_held(holder)
        told: list[str] = []

        def let_go(_seconds: float) -> None:
            assert holder.stdin is not None
            if not holder.stdin.closed:
                holder.stdin.close()

        with exclusive(
            "device-a", timeout_s=60, folder=tmp_path, on_wait=lambda: told.append("waiting"), sleep=let_go
        ):
            assert holder.stdout is not None
            assert holder.stdout.readline() == "released\n"
        assert told == ["waiting"], "news at once, and then only now and then"


def test_other_names_are_other_locks(tmp_path: Path) -> None:
    with another_process("device-a", tmp_path) as holder:
        wait_until_held(holder)
        with exclusive("device-b", timeout_s=0, folder=tmp_path, sleep=give_up):
            pass


@pytest.mark.parametrize(
    "name", ["cpu@host", "adb-XXXX (2)._adb-tls-connect._tcp", "../../escape", "192.168.1.5:5555"]
)
def test_g2_02_any_name_is_one_plain_file(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    with exclusive(name, timeout_s=0, folder=folder, sleep=give_up):
        assert [p.parent for p in tmp_path.rglob("*.lock")] == [folder]


def test_a_lock_ends_with_kill_9_of_its_holder(tmp_path: Path) -> None:
    with another_process("device-a", tmp_path) as holder:
        wait_until_held(holder)
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        with exclusive("device-a", timeout_s=0, folder=tmp_path, sleep=give_up):
            pass


def test_waiting_too_long_names_the_holder(tmp_path: Path) -> None:
    with another_process("device-a", tmp_path) as holder:
        wait_until_held(holder)
        with (
            pytest.raises(InfraError, match=rf"device-a is in use by process {holder.pid};"),
            exclusive("device-a", timeout_s=0, folder=tmp_path),
        ):
            pass


def test_the_name_of_the_last_holder_does_not_stay(tmp_path: Path) -> None:
    for _ in range(2):
        with exclusive("device-a", timeout_s=0, folder=tmp_path, sleep=give_up):
            assert (tmp_path / "device-a.lock").read_text() == f"{os.getpid()}\n"


def test_a_lock_is_released_when_its_block_fails(tmp_path: Path) -> None:
    def fails() -> None:
        with exclusive("device-a", timeout_s=0, folder=tmp_path):
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fails()
    with exclusive("device-a", timeout_s=0, folder=tmp_path, sleep=give_up):
        pass


def test_two_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    with (
        exclusive("device-a", timeout_s=0, folder=tmp_path),
        pytest.raises(InfraError, match=f"process {os.getpid()}"),
        exclusive("device-a", timeout_s=0, folder=tmp_path),
    ):
        pass


def test_the_lock_folder_does_not_depend_on_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A login shell and a nightly job must meet in the same folder, which only their user can write."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/12345")
    first = lock_folder()
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert lock_folder() == first
    assert first.stat().st_uid == os.getuid()
    assert first.stat().st_mode & 0o077 == 0
