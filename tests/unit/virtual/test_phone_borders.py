"""What a virtual phone says about places, ports and faults that cannot be used."""

import asyncio
from pathlib import Path

import pytest

from orchestrator.domain.errors import UsageError
from workers.virtual.phone import CONTROL_FILE, VirtualPhone
from workers.virtual.profile import load_profile

PROFILE = load_profile("mid-mali")


def test_a_folder_that_cannot_be_made_is_named() -> None:
    async def start() -> None:
        async with VirtualPhone(PROFILE, Path("/proc/nope")):
            pass

    with pytest.raises(UsageError, match=r"/proc/nope: .*--root"):
        asyncio.run(start())


@pytest.mark.parametrize("port", [-1, 65536, 99999])
def test_a_port_that_does_not_exist_is_refused(tmp_path: Path, port: int) -> None:
    async def start() -> None:
        async with VirtualPhone(PROFILE, tmp_path, port=port):
            pass

    with pytest.raises(UsageError, match=f"port {port}"):
        asyncio.run(start())


@pytest.mark.parametrize("text", [b"explode\n", b"drop:on=(\n", b"stall\ndrop:after=x\n", b"\xff\xfe\n"])
def test_bad_faults_are_said_and_the_old_ones_stay(tmp_path: Path, text: bytes) -> None:
    said: list[str] = []

    async def link(phone: VirtualPhone) -> None:
        """Connect and leave, as an adb server may."""
        reader, writer = await asyncio.open_connection("127.0.0.1", phone.port)
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()

    async def live() -> None:
        async with VirtualPhone(PROFILE, tmp_path, ["drip:on=old"], say=said.append) as phone:
            (phone.root.state / CONTROL_FILE).write_bytes(text)
            await link(phone)
            assert phone.faults.find({"drip"}, "old")
            (phone.root.state / CONTROL_FILE).write_text("stall:on=new\n")
            await link(phone)
            assert phone.faults.find({"stall"}, "new")
            assert not phone.faults.find({"drip"}, "old")

    asyncio.run(live())
    (line,) = said
    assert CONTROL_FILE in line
    assert "stay" in line
