"""The rungs by which a lost phone is brought back; each touches that phone and nothing else."""

import shlex
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from typing import IO

from orchestrator.domain.errors import InfraError, UsageError
from orchestrator.domain.health import Rung
from workers.transports.adb import AdbDevice, AdbServer

CALL_S = 10.0
CONNECT_S = 20.0
POWER_S = 60.0
BACK_S = 180.0
"""A phone that restarts is back in so much time, or the next rung is tried."""
POLL_S = 1.0
CYCLE_POLL_S = 0.1


def climb(
    rung: Rung,
    server: AdbServer,
    serial: str,
    power_cycle: str,
    stop: threading.Event,
    *,
    network: bool,
) -> None:
    """Try one rung and wait until the phone answers.

    Args:
        power_cycle: command with ``{serial}``, or empty.
        network: its serial is an address to which the server opened the link (``AdbServer.over_network``).
        stop: set when a person takes the phone or the agent ends: it is touched and waited for no more.

    Raises:
        InfraError: the rung cannot be tried, or the phone did not come back.
    """
    if stop.is_set():
        raise InfraError(f"{rung}: the phone was left alone")
    match rung:
        case Rung.RECONNECT:
            if network:  # what is on USB has no link to open
                server.disconnect_phone(serial, CALL_S)
                server.connect_phone(serial, CONNECT_S)
            _await_answer(server, serial, CONNECT_S, stop, network=network)
        case Rung.ADB_RECONNECT:
            server.reconnect_phone(serial, CALL_S)
            _await_answer(server, serial, CONNECT_S, stop, network=network)
        case Rung.REBOOT:
            with suppress(InfraError):  # its link dies in it; one that hangs may take the word and not answer
                AdbDevice(server, serial).run(["reboot"], timeout_s=CALL_S)
            stop.wait(POLL_S)  # the phone that still goes down would answer once more
            _await_answer(server, serial, BACK_S, stop, network=network)
        case Rung.POWER_CYCLE:
            _cycle(power_cycle, serial, stop)
            _await_answer(server, serial, BACK_S, stop, network=network)


def power_words(command: str) -> list[str]:
    """The command for USB power as words.

    Raises:
        UsageError: a quote in it has no end.
    """
    try:
        return shlex.split(command)
    except ValueError as e:
        raise UsageError(f"TILEFARM_POWER_CYCLE={command!r}: {e}") from e


def _cycle(command: str, serial: str, stop: threading.Event) -> None:
    words = power_words(command)
    if not words:
        raise InfraError("no command is set (TILEFARM_POWER_CYCLE)")
    if serial.startswith("-"):
        raise InfraError(f"serial {serial!r} would be an option of {words[0]}")
    words = [word.replace("{serial}", serial) for word in words]
    try:
        with tempfile.TemporaryFile() as said:
            _await_end(words, said, stop)
    except (OSError, ValueError) as e:
        raise InfraError(f"{words[0]}: {e}") from e


def _await_end(words: list[str], said: IO[bytes], stop: threading.Event) -> None:
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    deadline = time.monotonic() + POWER_S
    while process.poll() is None:
        if time.monotonic() >= deadline or stop.is_set():
            process.kill()
            process.wait()
            raise InfraError(f"{words[0]} was ended: it took longer than {POWER_S:.0f} s, or the agent ends")
        stop.wait(CYCLE_POLL_S)  # the deadline above bounds the wait
    if process.returncode != 0:
        said.seek(0)
        text = said.read().decode("utf-8", "replace").strip()[-200:]
        raise InfraError(f"{words[0]} ended with {process.returncode}: {text}")


def _await_answer(
    server: AdbServer, serial: str, seconds: float, stop: threading.Event, *, network: bool
) -> None:
    deadline = time.monotonic() + seconds
    why = "it was left alone"
    while not stop.is_set():
        try:
            if network:
                with suppress(InfraError):  # after a restart a network phone is listed only once it is asked
                    server.connect_phone(serial, CALL_S)
            AdbDevice(server, serial).run(["true"], timeout_s=CALL_S)
            return
        except InfraError as e:
            why = str(e)
            if time.monotonic() >= deadline:
                break
        stop.wait(POLL_S)  # nobody calls us; the deadline above bounds the wait
    raise InfraError(f"it did not come back in {seconds:.0f} s ({why})")
