"""The adb server: never started or ended in passing, its list, phones under two serials."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.domain.errors import DeviceLost, InfraError
from tests.phones import StartPhone, free_port, own_adb_server, running_phone
from workers.transports.adb import AdbDevice, AdbServer, list_phones
from workers.transports.adb_server import connect_server, start_server
from workers.transports.phones import distinct_phones

CALL_S = 60.0


def answers(server: AdbServer) -> bool:
    try:
        server.version()
    except InfraError:
        return False
    return True


def test_g2_08_no_server_is_started_in_passing(monkeypatch: pytest.MonkeyPatch):
    port = free_port()
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(port))
    with pytest.raises(InfraError, match=f"none answers.*adb -P {port} start-server"):
        connect_server()
    server = AdbServer("127.0.0.1", port)
    with pytest.raises(InfraError, match="start-server"):
        list_phones(server)
    with pytest.raises(InfraError, match="start-server"):
        AdbDevice(server, "any").run(["true"], timeout_s=CALL_S)
    assert not answers(server)


def test_a_server_is_started_when_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))
    server = AdbServer("127.0.0.1", free_port())
    assert start_server(server) == server
    try:
        assert answers(server)
        assert start_server(server) == server
    finally:
        os.kill(_process_listening_on(server.port), signal.SIGTERM)


def test_connect_server_takes_the_environment(adb_server: AdbServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(adb_server.port))
    assert connect_server() == adb_server
    monkeypatch.setenv("ADB_SERVER_SOCKET", f"tcp:127.0.0.1:{adb_server.port}")
    assert connect_server() == adb_server


def test_something_else_on_the_port_is_told(start_phone: StartPhone):
    """A virtual phone is no adb server: it answers nothing and closes."""
    phone = start_phone(connect=False)
    with pytest.raises(InfraError, match="adb server 127"):
        AdbServer("127.0.0.1", phone.phone.port).version(timeout_s=0.5)


def test_g2_06_a_server_that_was_restarted_finds_its_phones_again(tmp_path: Path):
    with (
        own_adb_server(tmp_path / "home") as server,
        running_phone(server, "tensor-g2", tmp_path / "p") as phone,
    ):
        port = server.port
        device = phone.device()
        assert device.run(["true"], timeout_s=CALL_S).exit_code == 0
    with pytest.raises(InfraError):
        device.run(["true"], timeout_s=CALL_S)
    with own_adb_server(tmp_path / "home", port) as server:
        with pytest.raises(DeviceLost):
            device.run(["true"], timeout_s=CALL_S)
        with running_phone(server, "tensor-g2", tmp_path / "p") as phone:
            assert phone.device().run(["true"], timeout_s=CALL_S).exit_code == 0


def test_g2_02_states_of_real_phones(start_phone: StartPhone, adb_server: AdbServer):
    fine = start_phone()
    refusing = start_phone("tensor-g2", "unauthorized", connect=False)
    with pytest.raises(DeviceLost, match="accept this host's key on the phone's screen"):
        adb_server.connect_phone(refusing.serial, timeout_s=2)
    rows = {row.serial: row for row in list_phones(adb_server)}
    assert rows[fine.serial].usable
    assert rows[refusing.serial].state == "unauthorized"
    with pytest.raises(DeviceLost, match="unauthorized: accept"):
        refusing.device().run(["true"], timeout_s=CALL_S)


def test_a_phone_that_asks_for_the_key_is_used_once_it_accepts(start_phone: StartPhone):
    phone = start_phone("tensor-g2")
    assert phone.device().properties(timeout_s=CALL_S)["ro.soc.model"] == "GS201"
    phone.connect()
    assert phone.device().run(["true"], timeout_s=CALL_S).exit_code == 0


def test_two_serials_of_one_phone(start_phone: StartPhone, adb_server: AdbServer):
    """One phone connected under two names of this machine, and another one."""
    phone, other = start_phone(), start_phone("old-android")
    second = f"localhost:{phone.phone.port}"
    adb_server.connect_phone(second)
    try:
        rows = [row for row in list_phones(adb_server) if row.usable]
        found = distinct_phones(rows, lambda serial: AdbDevice(adb_server, serial))
    finally:
        adb_server.disconnect_phone(second)
    assert {row.serial for row in rows} >= {phone.serial, second, other.serial}
    names = {frozenset({p.listing.serial, *p.also}) for p in found}
    assert frozenset({phone.serial, second}) in names
    assert frozenset({other.serial}) in names
    assert all(not p.problem for p in found)


def test_two_phones_that_tell_one_serial_number_stay_two(start_phone: StartPhone, adb_server: AdbServer):
    one, two = start_phone(serial="0123456789ABCDEF"), start_phone(serial="0123456789ABCDEF")
    rows = [row for row in list_phones(adb_server) if row.serial in (one.serial, two.serial)]
    found = distinct_phones(rows, lambda serial: AdbDevice(adb_server, serial))
    assert len(found) == 2
    assert all("0123456789ABCDEF" in phone.problem for phone in found)


def test_a_phone_that_does_not_answer_is_kept_with_its_problem(
    start_phone: StartPhone, adb_server: AdbServer
):
    phone = start_phone("snapdragon-8-gen-3", "stall:on=getprop")
    rows = [row for row in list_phones(adb_server) if row.serial == phone.serial]
    (found,) = distinct_phones(rows, lambda serial: AdbDevice(adb_server, serial), timeout_s=0.5)
    assert "not done after" in found.problem


def test_an_offline_phone_is_listed_as_such(start_phone: StartPhone, adb_server: AdbServer):
    phone = start_phone("snapdragon-8-gen-3", "offline", connect=False)
    connecting = subprocess.Popen(
        [sys.executable, "-c", CONNECT, str(adb_server.port), phone.serial], stderr=subprocess.DEVNULL
    )
    try:
        phone.wait_for_link()
        rows = {row.serial: row for row in list_phones(adb_server)}
        assert rows[phone.serial].state == "offline"
        assert "unplug" in rows[phone.serial].reason
        with pytest.raises(DeviceLost, match="offline"):
            phone.device().run(["true"], timeout_s=CALL_S)
    finally:
        connecting.terminate()
        connecting.wait(CALL_S)


CONNECT = """
import sys
from workers.transports.adb import AdbServer
AdbServer("127.0.0.1", int(sys.argv[1])).connect_phone(sys.argv[2])
"""


def _process_listening_on(port: int) -> int:
    import psutil

    for process in psutil.process_iter(["name", "cmdline"]):  # None of one that has just ended
        if process.info["name"] == "adb" and f"tcp:{port}" in " ".join(process.info["cmdline"] or ()):
            return process.pid
    raise AssertionError(f"no adb server on {port}")
