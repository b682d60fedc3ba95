"""The rungs by which a lost phone is brought back; each touches that phone and nothing else."""

import shlex
import subprocess
import threading
import time
from contextlib import suppress

from orchestrator.domain.errors import InfraError
from orchestrator.domain.health import Rung
from workers.transports.adb import AdbDevice, AdbServer

CALL_S = 10.0
CONNECT_S = 20.0
POWER_S = 60.0
BACK_S = 180.0
"""A phone that restarts is back in so much time, or the next rung is tried."""
POLL_S = 1.0


def climb(rung: Rung, server: AdbServer, serial: str, power_cycle: str, stop: threading.Event) -> None:
    """Try one rung and wait until the phone answers.

    Args:
        power_cycle: command with ``{serial}``, or empty.
        stop: set when the agent ends: nothing is waited for any more.

    Raises:
        InfraError: the rung cannot be tried, or the phone did not come back.
    """
    match rung:
        case Rung.RECONNECT:
            if ":" in serial:  # a network address; what is on USB has no link to open
                server.disconnect_phone(serial, CALL_S)
                server.connect_phone(serial, CONNECT_S)
            _await_answer(server, serial, CONNECT_S, stop)
        case Rung.ADB_RECONNECT:
            server.reconnect_phone(serial, CALL_S)
            _await_answer(server, serial, CONNECT_S, stop)
        case Rung.REBOOT:
            with suppress(InfraError):  # its link dies in it; one that hangs may take the word and not answer
                AdbDevice(server, serial).run(["reboot"], timeout_s=CALL_S)
            stop.wait(POLL_S)  # the phone that still goes down would answer once more
            _await_answer(server, serial, BACK_S, stop)
        case Rung.POWER_CYCLE:
            _cycle(power_cycle, serial)
            _await_answer(server, serial, BACK_S, stop)


def _cycle(command: str, serial: str) -> None:
    words = [word.replace("{serial}", serial) for word in shlex.split(command)]
    if not words:
        raise InfraError("no command is set (TILEFARM_POWER_CYCLE)")
    try:
        done = subprocess.run(words, capture_output=True, timeout=POWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise InfraError(f"{words[0]}: {e}") from e
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()[-200:]
        raise InfraError(f"{words[0]} ended with {done.returncode}: {said}")


def _await_answer(server: AdbServer, serial: str, seconds: float, stop: threading.Event) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            if ":" in serial:
                with suppress(InfraError):  # after a restart a network phone is listed only once it is asked
                    server.connect_phone(serial, CALL_S)
            AdbDevice(server, serial).run(["true"], timeout_s=CALL_S)
            return
        except InfraError as e:
            if time.monotonic() >= deadline or stop.is_set():
                raise InfraError(f"it did not come back in {seconds:.0f} s ({e})") from e
        stop.wait(POLL_S)  # nobody calls us; the deadline above bounds the wait
