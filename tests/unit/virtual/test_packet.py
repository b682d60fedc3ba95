"""Packets of the transport protocol."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.virtual.packet import HEADER, Command, Packet, ProtocolError, read_packet

WORD = st.integers(0, 2**32 - 1)


def read(data: bytes, max_payload: int = 1024) -> Packet | None:
    async def go() -> Packet | None:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await read_packet(reader, max_payload)

    return asyncio.run(go())


@given(st.sampled_from(Command), WORD, WORD, st.binary(max_size=64))
def test_round_trip(command: Command, arg0: int, arg1: int, payload: bytes):
    packet = Packet(command, arg0, arg1, payload)
    assert read(packet.encode()) == packet


@given(st.integers(0, 30))
def test_a_cut_packet_is_the_end_of_the_link(kept: int):
    assert read(Packet(Command.WRTE, 1, 2, b"payload").encode()[:kept]) is None


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: phone\r\n\r\n",
        Packet(Command.WRTE, 1, 2, bytes(1025)).encode(),
        HEADER.pack(0x12345678, 0, 0, 0, 0, 0x12345678 ^ 0xFFFFFFFF),
    ],
    ids=["http", "too long", "unknown command"],
)
def test_what_is_not_adb_is_refused(data: bytes):
    with pytest.raises(ProtocolError):
        read(data)
