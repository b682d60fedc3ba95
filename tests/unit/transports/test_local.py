"""What only the local device promises."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.domain.errors import NoSpace, NotInstalled, TransferFailed
from tests.phones import process_runs
from workers.transports.deadline import Deadline
from workers.transports.local import LocalDevice

WAIT_S = 60.0
WORKER = """
import sys
from pathlib import Path
from workers.transports.local import LocalDevice
LocalDevice(Path(sys.argv[1])).stream(
    ["sh", "-c", "echo $$; exec sleep 600"],
    lambda line: print(line.decode(), end="", flush=True),
    timeout_s=600, idle_timeout_s=600,
)
"""


def test_the_command_dies_with_a_worker_that_is_killed(tmp_path: Path):
    with subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path)], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        command = int(worker.stdout.readline())
        assert Path(f"/proc/{command}").exists()
        worker.send_signal(signal.SIGKILL)
    deadline = Deadline.after(WAIT_S, "the command ends")
    while process_runs(command):
        deadline.left()


def test_no_space_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    device = LocalDevice(tmp_path)

    def full(_self: Path, _target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(NoSpace, match="No space left on device"):
        device.push(b"x", f"{device.workdir}/f", timeout_s=WAIT_S)
    assert list(tmp_path.iterdir()) == []


def test_bytes_that_change_on_the_way_to_disk_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    device = LocalDevice(tmp_path)

    def other_bytes(_path: Path, _deadline: Deadline) -> Iterator[bytes]:
        return iter([b"y"])

    monkeypatch.setattr("workers.transports.local._chunks", other_bytes)
    with pytest.raises(TransferFailed, match="another digest"):
        device.push(b"x", f"{device.workdir}/f", timeout_s=WAIT_S)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_setpriv_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstalled, match="apt install util-linux"):
        LocalDevice(tmp_path).run(["true"], timeout_s=WAIT_S)


def test_commands_start_in_the_workdir_of_the_device(tmp_path: Path):
    device = LocalDevice(tmp_path / "w")
    assert device.run(["pwd"], timeout_s=WAIT_S).stdout.decode().strip() == device.workdir
