"""The adb server's list over a server that is absent, replaced, or cannot be started just now."""

import socket
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.phones import free_port, own_adb_server, running_phone
from workers.transports import adb_server, adb_tracking
from workers.transports.adb import AdbServer
from workers.transports.adb_listing import PhoneListing
from workers.transports.adb_tracking import Tracker

WAIT_S = 60.0


class Heard:
    """What a tracker tells, and a way to wait for it."""

    def __init__(self) -> None:
        self.lists: list[list[str]] = []
        self.states: list[tuple[str, dict[str, str]]] = []
        """Version of the server, and word of each phone."""
        self.network: list[dict[str, bool | None]] = []
        self.lost: list[str] = []
        self._news = threading.Condition()

    def on_list(self, rows: Sequence[PhoneListing], about: str) -> None:
        with self._news:
            self.states.append((about.partition("version ")[2], {row.serial: row.state for row in rows}))
            self.network.append({row.serial: row.network for row in rows})
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

    monkeypatch.setattr(adb_server, "shutil", SimpleNamespace(which=which))
    half_written = tmp_path / "adb"
    half_written.write_bytes(b"\x00\x01")
    half_written.chmod(0o755)
    server = AdbServer("127.0.0.1", free_port())
    with tracking(server) as heard:
        heard.wait(lambda: any("apt install adb" in why for why in heard.lost))
        program[0] = str(half_written)
        heard.wait(lambda: any("Exec format error" in why for why in heard.lost))
        program[0] = None
        with own_adb_server(tmp_path / "home", server.port):
            heard.wait(lambda: heard.lists == [[]])
            with running_phone(server, "mid-mali", tmp_path / "phone") as phone:
                heard.wait(lambda: heard.lists[-1] == [phone.serial])
                assert heard.network[-1] == {phone.serial: True}, "this server opened its link"
        lost = len(heard.lost)
        heard.wait(lambda: len(heard.lost) > lost)
        heard.lists.clear()
        with own_adb_server(tmp_path / "home", server.port):
            heard.wait(lambda: heard.lists == [[]])
    assert {version for version, _ in heard.states} == {"41"}


@contextmanager
def server_of_version(port: int, version: int, rows: str, paths: Mapping[str, str] = {}) -> Generator[None]:
    """Answers what a tracker asks, and ends with all its connections, as one that is replaced does.

    Args:
        paths: serial → what it says of where that hangs; of any other, that there is no such phone.
    """
    answers = {b"host:version": b"%04x" % version, b"host:track-devices": rows.encode()}
    answers |= {b"host-serial:%s:get-devpath" % s.encode(): p.encode() for s, p in paths.items()}
    clients: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", port)) as listener:

        def serve() -> None:
            with suppress(OSError):  # it ends
                while True:
                    clients.append(listener.accept()[0])
                    asked = clients[-1].recv(4, socket.MSG_WAITALL)
                    text = answers.get(clients[-1].recv(int(asked, 16), socket.MSG_WAITALL))
                    word, text = (b"OKAY", text) if text is not None else (b"FAIL", b"not found")
                    clients[-1].sendall(b"%s%04x%s" % (word, len(text), text))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(WAIT_S)
            for client in clients:
                client.close()


def test_g2_08_a_server_that_was_replaced_by_one_of_another_version_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G2-08: 41 is replaced by 39, which does not know this host's key: its phones wait for a person."""

    def no_adb(_name: str) -> None:
        return None

    monkeypatch.setattr(adb_tracking, "RETRY_S", 0.02)
    monkeypatch.setattr(adb_server, "shutil", SimpleNamespace(which=no_adb))
    server = AdbServer("127.0.0.1", free_port())
    with tracking(server) as heard:
        with server_of_version(server.port, 41, "ABC\tdevice\n"):
            heard.wait(lambda: heard.states == [("41", {"ABC": "device"})])
        heard.wait(lambda: heard.lost != [])
        banners = "* daemon not running; starting now at tcp:5037\n* daemon started successfully\n"
        with server_of_version(server.port, 39, f"{banners}ABC\tunauthorized\n"):
            heard.wait(lambda: heard.states[-1] == ("39", {"ABC": "unauthorized"}))
    assert heard.lists[-1] == []


def test_a_network_phone_is_told_by_the_server_and_not_by_its_serial() -> None:
    rows = {"10.0.0.1:22": "device", "10.0.0.2:22": "device", "10.0.0.3:22": "offline", "R58": "device"}
    paths = {"10.0.0.1:22": "usb:1-4", "10.0.0.2:22": "unknown", "10.0.0.3:22": "unknown"}
    text = "".join(f"{serial}\t{word}\n" for serial, word in {**rows, "10.0.0.4:22": "device"}.items())
    server = AdbServer("127.0.0.1", free_port())
    with server_of_version(server.port, 41, text, paths), tracking(server) as heard:
        heard.wait(lambda: heard.lists != [])
    assert heard.network == [
        {"10.0.0.1:22": False, "10.0.0.2:22": True, "10.0.0.3:22": None, "R58": None, "10.0.0.4:22": None}
    ]


def test_a_tracker_outlives_what_nobody_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adb_tracking, "RETRY_S", 0.02)
    monkeypatch.setattr(adb_tracking, "log", SimpleNamespace(exception=print))

    def odd(_server: AdbServer) -> AdbServer:
        raise ValueError("embedded null byte")

    monkeypatch.setattr(adb_tracking, "start_server", odd)
    with tracking(AdbServer("127.0.0.1", 1)) as heard:
        heard.wait(lambda: heard.lost[:2] == ["ValueError: embedded null byte"] * 2)
