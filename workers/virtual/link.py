"""One link from the adb server: handshake, streams, and their services."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from workers.virtual import auth
from workers.virtual.faults import Fault, FaultBox
from workers.virtual.packet import (
    AUTH_PUBLIC_KEY,
    AUTH_SIGNATURE,
    AUTH_TOKEN,
    OLD_VERSION,
    VERSION,
    Command,
    Packet,
    ProtocolError,
    read_packet,
)
from workers.virtual.profile import PhoneProfile
from workers.virtual.root import PhoneRoot
from workers.virtual.shell import Shell
from workers.virtual.stream import Stream, StreamClosed
from workers.virtual.sync import SyncService

_LONGEST_PAYLOAD = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Body:
    """The phone behind a link."""

    profile: PhoneProfile
    root: PhoneRoot
    shell: Shell
    faults: FaultBox
    strike: Callable[[Fault], Awaitable[None]]
    """Carries out a drop or a reboot."""
    service_ended: Callable[[], Awaitable[None]]


class Link:
    """Serves until the adb server or a fault closes it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: Body) -> None:
        self._reader = reader
        self._writer = writer
        self._body = body
        self._streams: dict[int, Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._max_payload = body.profile.adb.max_payload
        self._next_id = 1

    async def serve(self) -> None:
        try:
            if await self._handshake():
                while packet := await read_packet(self._reader, _LONGEST_PAYLOAD):
                    await self._handle(packet)
        except (ProtocolError, ConnectionError):
            pass  # the peer is gone or is no adb server: the same as a pulled cable
        finally:
            for stream in self._streams.values():
                stream.close_now()
            self.drop()
            if self._tasks:
                await asyncio.wait(self._tasks)
            with contextlib.suppress(ConnectionError):
                await self._writer.wait_closed()

    def drop(self) -> None:
        """As if the cable was pulled."""
        self._writer.close()

    async def _handshake(self) -> bool:
        """True when the host may open streams."""
        packet = await read_packet(self._reader, _LONGEST_PAYLOAD)
        if packet is None or packet.command is not Command.CNXN:
            return False
        if self._body.faults.find({"offline"}, "connect"):
            await self._reader.read()
            return False
        refused = self._body.faults.find({"unauthorized"}, "connect") is not None
        if (refused or self._body.profile.adb.ask_key) and not await self._authenticate(refused):
            return False
        self._max_payload = min(self._body.profile.adb.max_payload, packet.arg1)
        await self._send(Packet(Command.CNXN, self._version, self._max_payload, self._banner()))
        return True

    @property
    def _version(self) -> int:
        return OLD_VERSION if self._body.profile.adb.old_protocol else VERSION

    def _banner(self) -> bytes:
        props = self._body.profile.props
        words = [
            f"{name}={props.get(name, '')}"
            for name in ("ro.product.name", "ro.product.model", "ro.product.device")
        ]
        features = self._body.profile.adb.features
        if features:
            words.append(f"features={','.join(features)}")
        return f"device::{';'.join(words)};".encode()

    async def _authenticate(self, refused: bool) -> bool:
        """Tokens until a signature fits a known key or an offered key is accepted."""
        store = self._body.root.state / "adb_keys"
        token = os.urandom(auth.TOKEN_BYTES)
        await self._send(Packet(Command.AUTH, AUTH_TOKEN, 0, token))
        while packet := await read_packet(self._reader, _LONGEST_PAYLOAD):
            if packet.command is not Command.AUTH:
                continue
            if packet.arg0 == AUTH_SIGNATURE:
                keys = [] if refused else _stored_keys(store)
                if any(auth.signed_by(key, token, packet.payload) for key in keys):
                    return True
                token = os.urandom(auth.TOKEN_BYTES)
                await self._send(Packet(Command.AUTH, AUTH_TOKEN, 0, token))
            if packet.arg0 == AUTH_PUBLIC_KEY and not refused and auth.parse_public_key(packet.payload):
                with store.open("ab") as out:
                    out.write(packet.payload.rstrip(b"\0") + b"\n")
                return True
        return False

    async def _handle(self, packet: Packet) -> None:
        stream = self._streams.get(packet.arg1)
        match packet.command:
            case Command.OPEN:
                await self._open(packet)
            case Command.WRTE if stream:
                stream.arrived(packet.payload)
            case Command.OKAY if stream:
                stream.acknowledged()
            case Command.CLSE if stream:
                stream.close_now()
            case Command.WRTE:
                await self._send(Packet(Command.CLSE, packet.arg1, packet.arg0))
            case _:
                pass  # late packets of closed streams

    async def _open(self, packet: Packet) -> None:
        service = packet.payload.rstrip(b"\0").decode("utf-8", "surrogateescape")
        job = self._service(service)
        if job is None:
            await self._send(Packet(Command.CLSE, 0, packet.arg0))
            return
        stream = Stream(
            self._next_id, packet.arg0, self._max_payload, self._send, self._body.faults, self._body.strike
        )
        self._next_id += 1
        stream.start(service)
        self._streams[stream.local_id] = stream
        await self._send(Packet(Command.OKAY, stream.local_id, stream.remote_id))
        task = asyncio.create_task(self._serve_stream(stream, job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _service(self, service: str) -> Callable[[Stream], Awaitable[None]] | None:
        name, _, argument = service.partition(":")
        kind, *options = name.split(",")
        shell = self._body.shell
        v2 = "v2" in options
        if kind == "shell" and v2 and "shell_v2" not in self._body.profile.adb.features:
            return None
        if kind == "shell" and not argument and "raw" not in options:
            return lambda stream: shell.interactive(stream, v2=v2)
        if kind == "shell" and v2:
            return lambda stream: shell.v2(stream, argument)
        if kind == "shell":
            return lambda stream: shell.plain(stream, argument, terminal=True)
        if kind == "exec":
            return lambda stream: shell.plain(stream, argument, terminal=False)
        if kind == "sync":
            return lambda stream: SyncService(stream, self._body.root, self._body.faults).serve()
        return None

    async def _serve_stream(self, stream: Stream, job: Callable[[Stream], Awaitable[None]]) -> None:
        try:
            await job(stream)
        except (StreamClosed, ConnectionError):
            pass  # the host went away: a phone shrugs
        finally:
            self._streams.pop(stream.local_id, None)
            if not stream.closed:
                await self._send(Packet(Command.CLSE, stream.local_id, stream.remote_id))
                stream.close_now()
        await self._body.service_ended()

    async def _send(self, packet: Packet) -> None:
        if self._writer.is_closing():
            return
        with contextlib.suppress(ConnectionError):  # seen by the reader as the end of the link
            self._writer.write(packet.encode())
            await self._writer.drain()


def _stored_keys(store: Path) -> list[tuple[int, int]]:
    if not store.is_file():
        return []
    keys = [auth.parse_public_key(line) for line in store.read_bytes().splitlines()]
    return [key for key in keys if key is not None]
