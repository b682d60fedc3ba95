"""The adb server's list over a server that is absent, replaced, or cannot be started just now."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.phones import free_port, own_adb_server, running_phone
from workers.transports import adb, adb_tracking
from workers.transports.adb import AdbServer
from workers.transports.adb_listing import PhoneListing
from workers.transports.adb_tracking import Tracker

WAIT_S = 60.0


class Heard:
    """What a tracker tells, and a way to wait for it."""

    def __init__(self) -> None:
        self.lists: list[list[str]] = []
        self.lost: list[str] = []
        self._news = threading.Condition()

    def on_list(self, rows: Sequence[PhoneListing], about: str) -> None:
        assert "version 41" in about
        with self._news:
            self.lists.append([row.serial for row in rows if row.usable])
            self._news.notify_all()

    def on_lost(self, why: str) -> None:
        with self._news:
            self.lost.append(why)
            self._news.notify_all()

    def wait(self, done: Callable[[], bool]) -> None:
        with self._news:
            assert self._news.wait_for(done, WAIT_S), (self.lists, self.lost)


@contextmanager
def tracking(server: AdbServer) -> Generator[Heard]:
    heard = Heard()
    tracker = Tracker(server, heard.on_list, heard.on_lost)
    tracker.start()
    try:
        yield heard
    finally:
        tracker.stop()


def test_g2_08_a_server_that_goes_and_comes_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G2-08, G2-06: also where there is no adb program, as in a container with its host's server, and while
    that program is being upgraded."""
    monkeypatch.setattr(adb_tracking, "RETRY_S", 0.02)
    program: list[str | None] = [None]

    def which(_name: str) -> str | None:
        return program[0]

    monkeypatch.setattr(adb, "shutil", SimpleNamespace(which=which))
    half_written = tmp_path / "adb"
    half_written.write_bytes(b"\x00\x01")
    half_written.chmod(0o755)
    server = AdbServer("127.0.0.1", free_port())
    with tracking(server) as heard:
        heard.wait(lambda: "adb is not on PATH. Install it: apt install adb" in heard.lost)
        program[0] = str(half_written)
        heard.wait(lambda: any("Exec format error" in why for why in heard.lost))
        program[0] = None
        with own_adb_server(tmp_path / "home", server.port):
            heard.wait(lambda: heard.lists == [[]])
            with running_phone(server, "mid-mali", tmp_path / "phone") as phone:
                heard.wait(lambda: heard.lists[-1] == [phone.serial])
        lost = len(heard.lost)
        heard.wait(lambda: len(heard.lost) > lost)
        heard.lists.clear()
        with own_adb_server(tmp_path / "home", server.port):
            heard.wait(lambda: heard.lists == [[]])


def test_a_tracker_outlives_what_nobody_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adb_tracking, "RETRY_S", 0.02)
    monkeypatch.setattr(adb_tracking, "log", SimpleNamespace(exception=print))

    def odd(_server: AdbServer) -> AdbServer:
        raise ValueError("embedded null byte")

    monkeypatch.setattr(adb_tracking, "start_server", odd)
    with tracking(AdbServer("127.0.0.1", 1)) as heard:
        heard.wait(lambda: heard.lost[:2] == ["ValueError: embedded null byte"] * 2)
