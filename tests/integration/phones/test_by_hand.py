"""``python -m workers.virtual``: a phone as a program of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.domain.errors import TruncatedOutput
from tests.phones import connect_again, free_port, process_runs
from workers.transports.adb import AdbDevice, AdbServer, list_phones

CALL_S = 60.0


@contextmanager
def by_hand(adb_server: AdbServer, *words: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """The program and its address."""
    with subprocess.Popen(
        [sys.executable, "-m", "workers.virtual", *words],
        env={**os.environ, "ANDROID_ADB_SERVER_PORT": str(adb_server.port)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            if "--connect" in words:
                while "connected to" not in process.stdout.readline():
                    assert process.poll() is None
            yield process, address
        finally:
            if process.poll() is None:
                process.kill()


def test_it_lists_itself_and_takes_itself_off_the_list(adb_server: AdbServer, tmp_path: Path):
    words = ("mid-mali", "--root", str(tmp_path / "root"), "--serial", "BYHAND1", "--connect")
    with by_hand(adb_server, *words) as (process, address):
        device = AdbDevice(adb_server, address)
        assert device.properties(timeout_s=CALL_S)["ro.serialno"] == "BYHAND1"
        process.send_signal(signal.SIGTERM)
        assert process.wait(CALL_S) == 0
    assert address not in [row.serial for row in list_phones(adb_server)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_every_command(adb_server: AdbServer, number: signal.Signals):
    with by_hand(adb_server, "snapdragon-8-gen-3", "--connect") as (process, address):
        lines: list[bytes] = []

        def on_line(line: bytes) -> None:
            lines.append(line)
            process.send_signal(number)

        with pytest.raises(TruncatedOutput):
            AdbDevice(adb_server, address).stream(
                ["sh", "-c", "echo $$; sleep 600"], on_line, timeout_s=CALL_S, idle_timeout_s=CALL_S
            )
        assert process.wait(CALL_S) == 0
        assert not process_runs(int(lines[0]))


def test_its_temporary_folder_goes_with_it(adb_server: AdbServer):
    with by_hand(adb_server, "old-android") as (process, _address):
        assert process.stdout is not None
        folder = Path(process.stdout.readline().split()[-1])
        assert folder.is_dir()
        process.send_signal(signal.SIGTERM)
        assert process.wait(CALL_S) == 0
        assert not folder.exists()


def test_faults_from_the_command_line_and_the_control_file(adb_server: AdbServer, tmp_path: Path):
    words = ("tensor-g2", "--root", str(tmp_path), "--fault", "drop:on=victim", "--connect")
    with by_hand(adb_server, *words) as (_process, address):
        device = AdbDevice(adb_server, address)
        with pytest.raises(TruncatedOutput):
            device.run(["echo", "victim"], timeout_s=CALL_S)
        (tmp_path / ".phone/faults.txt").write_text("drop:on=other\n")
        connect_again(adb_server, address)
        assert device.run(["echo", "victim"], timeout_s=CALL_S).stdout == b"victim\n"
        with pytest.raises(TruncatedOutput):
            device.run(["echo", "other"], timeout_s=CALL_S)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["tensor-g3"], 2, "Did you mean 'tensor-g2'"),
        (["tensor-g2", "--fault", "explode"], 2, "fault 'explode'"),
        (["tensor-g2", "--connect"], 3, "start-server"),
        (["tensor-g2", "--root", "/tmp/with space"], 2, "--root"),
    ],
)
def test_errors_have_an_exit_code_and_say_what_next(words: list[str], code: int, said: str):
    done = subprocess.run(
        [sys.executable, "-m", "workers.virtual", *words],
        env={**os.environ, "ANDROID_ADB_SERVER_PORT": str(free_port())},
        capture_output=True,
        text=True,
        timeout=CALL_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken(adb_server: AdbServer):
    with by_hand(adb_server, "mid-mali") as (_process, address):
        port = address.rpartition(":")[2]
        done = subprocess.run(
            [sys.executable, "-m", "workers.virtual", "mid-mali", "--port", port],
            capture_output=True,
            text=True,
            timeout=CALL_S,
            check=False,
        )
    assert done.returncode == 3
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
