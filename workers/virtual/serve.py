"""A virtual phone by hand: ``tilefarm phone PROFILE`` and ``python -m workers.virtual PROFILE``."""

import asyncio
import contextlib
import signal
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from orchestrator.domain.errors import InfraError
from workers.transports.adb import AdbServer
from workers.transports.adb_server import connect_server
from workers.virtual.phone import CONTROL_FILE, VirtualPhone
from workers.virtual.profile import load_profile


def serve(
    profile: str,
    *,
    port: int = 0,
    root: Path | None = None,
    faults: Sequence[str] = (),
    serial: str | None = None,
    connect: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Run until SIGINT or SIGTERM; everything that the phone started ends with it.

    Without ``root`` the phone's files live in a temporary folder. ``connect`` makes the machine's adb server
    list it, and takes it off the list at the end.

    Raises:
        UsageError: profile, fault or root cannot be used.
        InfraError: the port is taken, or no adb server runs (it is never started here).
    """
    loaded = load_profile(profile)
    server = connect_server() if connect else None
    with contextlib.ExitStack() as stack:
        folder = root or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tilefarm-phone-")))
        phone = VirtualPhone(loaded, folder, faults, serial=serial, port=port, say=say)
        asyncio.run(_until_stopped(phone, server, say))


async def _until_stopped(phone: VirtualPhone, server: AdbServer | None, say: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with phone:
        say(f"virtual phone {phone.profile.name} listens on {phone.address}")
        say(f"its files: {phone.root.folder}")
        say(f"faults while it runs, one a line: {phone.root.state / CONTROL_FILE}")
        if server is None:
            say(f"list it with: adb connect {phone.address}")
            await stop.wait()
            return
        await asyncio.to_thread(server.connect_phone, phone.address)
        say(f"connected to {server}; end with Ctrl-C")
        try:
            await stop.wait()
        finally:
            with contextlib.suppress(InfraError):  # the server may have ended before us
                await asyncio.to_thread(server.disconnect_phone, phone.address)
