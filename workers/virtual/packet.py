"""Packets of adb's transport protocol: a 24-byte header and a payload.

Source: protocol.txt and types.h of Android's adb.
"""

import asyncio
import struct
from dataclasses import dataclass
from enum import IntEnum

HEADER = struct.Struct("<6I")
VERSION = 0x01000001
"""From this version on the checksum is not filled in."""
OLD_VERSION = 0x01000000


class Command(IntEnum):
    SYNC = 0x434E5953
    CNXN = 0x4E584E43
    AUTH = 0x48545541
    OPEN = 0x4E45504F
    OKAY = 0x59414B4F
    CLSE = 0x45534C43
    WRTE = 0x45545257
    STLS = 0x534C5453


AUTH_TOKEN, AUTH_SIGNATURE, AUTH_PUBLIC_KEY = 1, 2, 3


class ProtocolError(Exception):
    """The peer does not speak adb."""


@dataclass(frozen=True, slots=True)
class Packet:
    command: Command
    arg0: int
    arg1: int
    payload: bytes = b""

    def encode(self) -> bytes:
        """With its checksum, which newer peers do not look at."""
        head = HEADER.pack(
            self.command,
            self.arg0,
            self.arg1,
            len(self.payload),
            sum(self.payload) & 0xFFFFFFFF,
            self.command ^ 0xFFFFFFFF,
        )
        return head + self.payload


async def read_packet(reader: asyncio.StreamReader, max_payload: int) -> Packet | None:
    """The next packet, or None when the peer closed the link.

    Raises:
        ProtocolError: not an adb packet, or longer than was agreed.
    """
    try:
        command, arg0, arg1, length, _checksum, magic = HEADER.unpack(await reader.readexactly(HEADER.size))
        if command ^ magic != 0xFFFFFFFF or length > max_payload:
            raise ProtocolError(f"bad header: command {command:#x} magic {magic:#x} length {length}")
        payload = await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    try:
        return Packet(Command(command), arg0, arg1, payload)
    except ValueError as e:
        raise ProtocolError(f"unknown command {command:#x}") from e
