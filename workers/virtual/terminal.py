"""``adb shell`` without a command: an interactive shell on a pseudo terminal, for people."""

import asyncio
import contextlib
import fcntl
import os
import pty
import re
import shutil
import struct
import termios
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

_CHUNK = 4096
_WINDOW = re.compile(rb"(\d+)x(\d+),")
"""``ROWSxCOLUMNS,WIDTHxHEIGHT`` of shell_v2's window size packet."""


class Terminal:
    """The phone's side of a pseudo terminal."""

    def __init__(self, number: int, reader: asyncio.StreamReader) -> None:
        self._number = number
        self._reader = reader

    async def read(self) -> bytes:
        """Output; empty at the end, which a terminal tells as an I/O error."""
        try:
            return await self._reader.read(_CHUNK)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        """Keys; a thread waits if the shell does not read them."""
        with contextlib.suppress(OSError):
            await asyncio.to_thread(os.write, self._number, data)

    def resize(self, text: bytes) -> None:
        if match := _WINDOW.match(text):
            rows, columns = (min(int(n), 0xFFFF) for n in match.groups())
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._number, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))


@asynccontextmanager
async def open_terminal(folder: str, environment: dict[str, str]) -> AsyncGenerator[tuple[Terminal, Process]]:
    """A shell that leads a session with this terminal; hung up at the end."""
    ours, theirs = pty.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            shutil.which("setsid") or "setsid",  # the host's, whatever the phone's PATH lacks
            "--ctty",
            "/bin/sh",
            "-i",
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env={**environment, "PS1": "virtual:$PWD $ "},
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb", buffering=0)
    )
    try:
        yield Terminal(ours, reader), process
    finally:
        transport.close()  # closes our side: the kernel sends SIGHUP to the session
