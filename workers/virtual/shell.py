"""``shell:``, ``shell,v2,raw:`` and ``exec:`` run by the host's /bin/sh."""

import asyncio
import contextlib
import os
import signal
import struct
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from workers.virtual.profile import PhoneProfile
from workers.virtual.root import PhoneRoot
from workers.virtual.stream import Stream, StreamClosed
from workers.virtual.terminal import Terminal, open_terminal

_STDIN, _STDOUT, _STDERR, _EXIT, _CLOSE_STDIN, _WINDOW_SIZE = range(6)
_PACKET = struct.Struct("<BI")
_CHUNK = 16 * 1024


@dataclass(slots=True)
class Shell:
    """Starts commands and knows those that still run: adbd lets them live when a stream closes."""

    profile: PhoneProfile
    root: PhoneRoot
    running: set[Process] = field(default_factory=set[Process])

    async def plain(self, stream: Stream, command: str, *, terminal: bool) -> None:
        """One stream of output and errors, no exit status."""
        crlf = terminal and self.profile.adb.crlf

        async def pump(output: asyncio.StreamReader) -> None:
            while data := await output.read(_CHUNK):
                await stream.write(data.replace(b"\n", b"\r\n") if crlf else data)
            await process.wait()

        process, outputs = await self._start(command, separate_errors=False)
        feeder = asyncio.create_task(_feed_plain(stream, process))
        try:
            async with _readers(outputs) as (output,):
                await stream.while_open(pump(output))
            await stream.at_exit()
        except StreamClosed:
            if terminal:
                _signal_group(process, signal.SIGHUP)
        finally:
            await _cancel(feeder)
            self._forget_ended()

    async def v2(self, stream: Stream, command: str) -> None:
        """Packets of standard output, standard error and the exit status."""
        process, outputs = await self._start(command, separate_errors=True)
        feeder = asyncio.create_task(_feed_v2(stream, process))
        writing = asyncio.Lock()

        async def pump(kind: int, reader: asyncio.StreamReader) -> None:
            while data := await reader.read(_CHUNK):
                async with writing:
                    await stream.write(_PACKET.pack(kind, len(data)) + data)

        async def both(output: asyncio.StreamReader, errors: asyncio.StreamReader) -> None:
            pumps = [asyncio.create_task(pump(kind, reader)) for kind, reader in _kinds(output, errors)]
            try:
                await asyncio.gather(*pumps)
            finally:
                for task in pumps:
                    task.cancel()
                await asyncio.wait(pumps)
            await process.wait()

        try:
            async with _readers(outputs) as (output, errors):
                await stream.while_open(both(output, errors))
            code = await process.wait()
            await stream.at_exit()
            await stream.write(_exit_packet(code))
        except StreamClosed:
            return
        finally:
            await _cancel(feeder)
            self._forget_ended()

    async def interactive(self, stream: Stream, *, v2: bool) -> None:
        """A shell for a person, on a terminal."""
        environment = self.root.environment(self.profile)
        try:
            async with open_terminal(str(self.root.folder), environment) as (terminal, process):
                self.running.add(process)
                keys = asyncio.create_task(_feed_terminal(stream, terminal, v2=v2))
                try:
                    await stream.while_open(_show(stream, terminal, process, v2=v2))
                finally:
                    await _cancel(keys)
        except StreamClosed:
            return
        finally:
            self._forget_ended()

    async def end_all(self) -> None:
        """Power off: SIGKILL to the group of every command that still runs."""
        ending, self.running = self.running, set()
        for process in ending:
            _signal_group(process, signal.SIGKILL)
        for process in ending:
            await process.wait()

    async def _start(self, command: str, *, separate_errors: bool) -> tuple[Process, list[int]]:
        """The process and the read ends of its output pipes.

        The pipes are ours and not asyncio's, which would kill the process on closing them."""
        pipes = [os.pipe() for _ in range(2 if separate_errors else 1)]
        try:
            process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                *(["-c", self.root.host_command(command)] if command else []),
                stdin=asyncio.subprocess.PIPE,
                stdout=pipes[0][1],
                stderr=pipes[-1][1],
                cwd=self.root.folder,
                env=self.root.environment(self.profile),
                start_new_session=True,
            )
        except BaseException:
            for read_end, _ in pipes:
                os.close(read_end)
            raise
        finally:
            for _, write_end in pipes:
                os.close(write_end)
        self.running.add(process)
        return process, [read_end for read_end, _ in pipes]

    def _forget_ended(self) -> None:
        for process in [p for p in self.running if p.returncode is not None]:
            self.running.discard(process)


@asynccontextmanager
async def _readers(outputs: list[int]) -> AsyncGenerator[list[asyncio.StreamReader]]:
    """Readers of pipes; closed at the end, so that a command that goes on writing gets SIGPIPE."""
    loop = asyncio.get_running_loop()
    transports: list[asyncio.ReadTransport] = []
    readers: list[asyncio.StreamReader] = []
    try:
        for number in outputs:
            reader = asyncio.StreamReader()
            transport, _ = await loop.connect_read_pipe(
                lambda reader=reader: asyncio.StreamReaderProtocol(reader), os.fdopen(number, "rb")
            )
            transports.append(transport)
            readers.append(reader)
        yield readers
    finally:
        for transport in transports:
            transport.close()


def _kinds(
    output: asyncio.StreamReader, errors: asyncio.StreamReader
) -> tuple[tuple[int, asyncio.StreamReader], ...]:
    return (_STDOUT, output), (_STDERR, errors)


async def _feed_plain(stream: Stream, process: Process) -> None:
    while data := await stream.read():
        if not await _to_stdin(process, data):
            return
    _end_of_input(process)


async def _feed_v2(stream: Stream, process: Process) -> None:
    pending = bytearray()
    with contextlib.suppress(StreamClosed):
        while True:
            kind, length = _PACKET.unpack(await stream.read_exactly(_PACKET.size, pending))
            payload = await stream.read_exactly(length, pending)
            if kind == _CLOSE_STDIN:
                _end_of_input(process)
            if kind == _STDIN and not await _to_stdin(process, payload):
                return
    _end_of_input(process)


def _end_of_input(process: Process) -> None:
    if process.stdin is not None:
        process.stdin.close()


async def _show(stream: Stream, terminal: Terminal, process: Process, *, v2: bool) -> None:
    while data := await terminal.read():
        await stream.write(_PACKET.pack(_STDOUT, len(data)) + data if v2 else data)
    code = await process.wait()
    if v2:
        await stream.write(_exit_packet(code))


async def _feed_terminal(stream: Stream, terminal: Terminal, *, v2: bool) -> None:
    pending = bytearray()
    with contextlib.suppress(StreamClosed):
        while v2:
            kind, length = _PACKET.unpack(await stream.read_exactly(_PACKET.size, pending))
            payload = await stream.read_exactly(length, pending)
            if kind == _STDIN:
                await terminal.write(payload)
            if kind == _WINDOW_SIZE:
                terminal.resize(payload)
    while not v2 and (data := await stream.read()):
        await terminal.write(data)


def _exit_packet(code: int) -> bytes:
    """A process that a signal ended has 128 and its number, as adbd tells it."""
    return _PACKET.pack(_EXIT, 1) + bytes([128 - code if code < 0 else code])


async def _to_stdin(process: Process, data: bytes) -> bool:
    if process.stdin is None or process.stdin.is_closing():
        return False
    try:
        process.stdin.write(data)
        await process.stdin.drain()
    except ConnectionError:
        return False
    return True


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, StreamClosed):
        await task


def _signal_group(process: Process, number: signal.Signals) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
