"""One stream of a link: flow control, and the gate through which faults act on its bytes."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from workers.virtual.faults import Fault, FaultBox, Kind
from workers.virtual.packet import Command, Packet

_WIRE_FAULTS: set[Kind] = {"drop", "stall", "drip", "reboot"}
_LAST_ACK_S = 2.0


class StreamClosed(Exception):
    """The host closed the stream, or the link is gone."""


class Stream:
    """Bytes between the host and one service of the phone."""

    def __init__(
        self,
        local_id: int,
        remote_id: int,
        max_payload: int,
        send: Callable[[Packet], Awaitable[None]],
        faults: FaultBox,
        strike: Callable[[Fault], Awaitable[None]],
    ) -> None:
        """``strike`` carries out a ``drop`` or ``reboot``."""
        self.local_id = local_id
        self.remote_id = remote_id
        self.max_payload = max_payload
        self.label = ""
        self._send = send
        self._faults = faults
        self._strike = strike
        self._incoming: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._closed = asyncio.Event()
        self._passed = bytearray()
        self._dripping: Fault | None = None

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def start(self, label: str) -> None:
        """A new command or request on this stream: faults match its label and count from here."""
        self.label = label
        self._passed.clear()
        self._dripping = None

    # Called by the link.

    def arrived(self, data: bytes) -> None:
        self._incoming.append(data)
        self._arrived.set()

    def acknowledged(self) -> None:
        self._may_write.set()

    def close_now(self) -> None:
        self._closed.set()
        self._arrived.set()
        self._may_write.set()

    # Called by services.

    async def read(self) -> bytes:
        """The next piece, acknowledged when it is taken; empty when the host closed the stream."""
        while not self._incoming:
            if self.closed:
                return b""
            self._arrived.clear()
            await self._arrived.wait()
        data = self._incoming.popleft()
        if not self.closed:
            await self._send(Packet(Command.OKAY, self.local_id, self.remote_id))
        return data

    async def read_exactly(self, count: int, pending: bytearray) -> bytes:
        """``count`` bytes, what is left over kept in ``pending``. Raises StreamClosed."""
        while len(pending) < count:
            data = await self.read()
            if not data:
                raise StreamClosed
            pending += data
        taken = bytes(pending[:count])
        del pending[:count]
        return taken

    async def write(self, data: bytes) -> None:
        """Send through the faults' gate. Raises StreamClosed."""
        fault = self._dripping or self._faults.find(_WIRE_FAULTS, self.label)
        if fault is not None:
            await self._through(fault, data)
        else:
            await self._write(data)

    async def at_exit(self) -> None:
        """All output has been sent, the exit status comes next."""
        fault = self._faults.find({"drop", "stall", "reboot"}, self.label)
        if fault is not None and fault.at == "exit":
            await self._act(fault)

    async def received(self, count: int) -> None:
        """``count`` bytes of a SEND came in. Raises StreamClosed."""
        fault = self._faults.find({"drop", "stall", "reboot"}, self.label)
        if fault is not None:
            passes = fault.passes(bytes(self._passed), bytes(count))
            self._passed += bytes(count)
            if passes is not None:
                await self._act(fault)

    async def while_open(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work, or give it up when the host closes the stream. Raises StreamClosed."""
        task = asyncio.create_task(work)
        closed = asyncio.create_task(self._closed.wait())
        try:
            await asyncio.wait((task, closed), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise StreamClosed
            await task
        finally:
            for each in (task, closed):
                each.cancel()
            await asyncio.wait((task, closed))

    async def _through(self, fault: Fault, data: bytes) -> None:
        if fault.kind == "drip":
            if self._dripping is None:  # once for the whole of this service
                self._dripping = fault
                self._faults.fired(fault)
            for start in range(0, len(data), fault.chunk):
                await self._write(data[start : start + fault.chunk])
                await asyncio.sleep(fault.every_ms / 1000)
            return
        passes = fault.passes(bytes(self._passed), data)
        if passes is None:
            self._passed += data
            await self._write(data)
            return
        await self._write(data[:passes])
        await self._act(fault)

    async def _act(self, fault: Fault) -> None:
        self._faults.fired(fault)
        if fault.kind == "stall":
            await self._closed.wait()
            raise StreamClosed
        with contextlib.suppress(TimeoutError):  # what passed is to reach the host before the link goes
            await asyncio.wait_for(self._may_write.wait(), _LAST_ACK_S)
        await self._strike(fault)
        raise StreamClosed

    async def _write(self, data: bytes) -> None:
        for start in range(0, len(data), self.max_payload):
            await self._may_write.wait()
            if self.closed:
                raise StreamClosed
            self._may_write.clear()
            chunk = data[start : start + self.max_payload]
            await self._send(Packet(Command.WRTE, self.local_id, self.remote_id, chunk))
