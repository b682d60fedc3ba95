"""Each rung on a virtual phone through a real adb server."""

import socket
import threading
from pathlib import Path

import pytest

from orchestrator.domain.errors import InfraError, UsageError
from orchestrator.domain.health import Rung
from tests.phones import StartPhone, adb_server, start_phone
from workers.agent import ladder
from workers.agent.ladder import climb, power_words
from workers.transports.adb import AdbServer

__all__ = ["adb_server", "start_phone"]
NO_SERVER = AdbServer("127.0.0.1", 1)


def go_on() -> threading.Event:
    return threading.Event()


def test_each_rung_brings_a_phone_back(
    start_phone: StartPhone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder, "POLL_S", 0.05)
    one = start_phone()
    other = start_phone("mid-mali")
    calls = tmp_path / "calls"
    command = f"""sh -c 'echo "$1" >> "$0"' {calls} {{serial}}"""
    one.server.disconnect_phone(one.serial)
    climb(Rung.RECONNECT, one.server, one.serial, command, go_on(), network=True)
    climb(Rung.ADB_RECONNECT, one.server, one.serial, command, go_on(), network=True)
    assert one.phone.boots + 1 == 1, "milder rungs do not restart it"
    climb(Rung.REBOOT, one.server, one.serial, command, go_on(), network=True)
    one.wait_for_boot(2)
    assert not calls.exists()
    climb(Rung.POWER_CYCLE, one.server, one.serial, command, go_on(), network=True)
    assert calls.read_text() == f"{one.serial}\n"
    assert other.device().run(["true"], timeout_s=20).exit_code == 0
    assert (other.phone.boots, other.phone.links) == (0, 1), "nothing touches another phone"


def test_a_phone_that_does_not_come_back_is_told(
    start_phone: StartPhone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder, "CONNECT_S", 0.3)
    monkeypatch.setattr(ladder, "CALL_S", 0.3)
    monkeypatch.setattr(ladder, "POLL_S", 0.05)
    phone = start_phone()
    phone.fault("stall:on=true")
    with pytest.raises(InfraError, match="did not come back in 0 s"):
        climb(Rung.RECONNECT, phone.server, phone.serial, "", go_on(), network=True)


@pytest.mark.parametrize("rung", Rung)
def test_no_address_is_opened_for_a_phone_on_usb_whatever_its_serial(
    rung: Rung, adb_server: AdbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A serial is the phone's own word: as an address it would be a connection of the phone's choice."""
    monkeypatch.setattr(ladder, "CONNECT_S", 0.1)
    monkeypatch.setattr(ladder, "BACK_S", 0.1)
    monkeypatch.setattr(ladder, "POLL_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as victim:
        victim.settimeout(0.3)
        serial = f"127.0.0.1:{victim.getsockname()[1]}"
        with pytest.raises(InfraError, match="not found"):
            climb(rung, adb_server, serial, "true", go_on(), network=False)
        with pytest.raises(TimeoutError):
            victim.accept()


@pytest.mark.parametrize("rung", Rung)
def test_a_phone_that_is_taken_is_not_touched(rung: Rung, tmp_path: Path) -> None:
    left = go_on()
    left.set()
    touched = tmp_path / "touched"
    with pytest.raises(InfraError, match="left alone"):
        climb(rung, NO_SERVER, "R58", f"touch {touched}", left, network=False)
    assert not touched.exists()


def test_a_power_command_is_ended_when_the_agent_ends() -> None:
    left = go_on()
    threading.Timer(0.2, left.set).start()
    with pytest.raises(InfraError, match="sleep was ended"):
        climb(Rung.POWER_CYCLE, NO_SERVER, "R58", "sleep 600", left, network=False)


@pytest.mark.parametrize(
    ("command", "serial", "why"),
    [
        ("", "R58", "no command is set"),
        ("sh -c 'echo port 3 >&2; exit 7'", "R58", "sh ended with 7: port 3"),
        ("/no/such/program", "R58", "No such file"),
        ("cycle {serial}", "-a", "would be an option of cycle"),
        ("cycle {serial}", "a\0b", "null byte"),
    ],
)
def test_a_power_command_that_fails_says_why(command: str, serial: str, why: str) -> None:
    with pytest.raises(InfraError, match=why):
        climb(Rung.POWER_CYCLE, NO_SERVER, serial, command, go_on(), network=False)


def test_a_power_command_with_an_open_quote_is_refused_when_the_agent_starts() -> None:
    with pytest.raises(UsageError, match="TILEFARM_POWER_CYCLE"):
        power_words("uhubctl -l 1 -p '2")
