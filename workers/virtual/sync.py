"""The sync service: STAT, LIST, SEND, RECV and QUIT on the phone's folder."""

import os
import struct
from pathlib import Path

from workers.virtual.faults import FaultBox
from workers.virtual.root import PhoneRoot
from workers.virtual.stream import Stream

_WORD = struct.Struct("<4sI")
_STAT = struct.Struct("<4sIII")
_ENTRY = struct.Struct("<4sIIII")
_LONGEST_DATA = 64 * 1024
_LONGEST_PATH = 1024


class SyncService:
    """One open ``sync:`` stream."""

    def __init__(self, stream: Stream, root: PhoneRoot, faults: FaultBox) -> None:
        self._stream = stream
        self._root = root
        self._faults = faults
        self._pending = bytearray()

    async def serve(self) -> None:
        """Requests until QUIT or the end of the stream."""
        while True:
            kind, length = _WORD.unpack(await self._take(_WORD.size))
            if kind == b"QUIT":
                return
            if length > _LONGEST_PATH:
                await self._fail("path too long")
                return
            path = (await self._take(length)).decode("utf-8", "surrogateescape")
            self._stream.start(f"sync {kind.decode('ascii', 'replace')} {path}")
            if kind == b"STAT":
                await self._stat(path)
            elif kind == b"LIST":
                await self._list(path)
            elif kind == b"RECV":
                await self._recv(path)
            elif kind == b"SEND":
                await self._send(path)
            else:
                await self._fail(f"unknown command {kind!r}")
                return

    async def _stat(self, path: str) -> None:
        mode, size, mtime = _numbers(self._root.host_path(path))
        await self._stream.write(_STAT.pack(b"STAT", mode, size, mtime))

    async def _list(self, path: str) -> None:
        folder = self._root.host_path(path)
        if folder.is_dir():
            for entry in sorted(folder.iterdir()):
                name = os.fsencode(entry.name)
                await self._stream.write(_ENTRY.pack(b"DENT", *_numbers(entry), len(name)) + name)
        await self._stream.write(_ENTRY.pack(b"DONE", 0, 0, 0, 0))

    async def _recv(self, path: str) -> None:
        try:
            with self._root.host_path(path).open("rb") as source:
                while chunk := source.read(_LONGEST_DATA):
                    await self._stream.write(_WORD.pack(b"DATA", len(chunk)) + chunk)
        except OSError as e:
            await self._fail(f"read failed: {e.strerror}")
            return
        await self._stream.write(_WORD.pack(b"DONE", 0))

    async def _send(self, target: str) -> None:
        """Receive a file. After a failure the rest is read and thrown away, as adbd does."""
        path, _, mode = target.rpartition(",")
        file = self._root.host_path(path)
        full = self._faults.find({"disk_full"}, self._stream.label)
        room = full.after if full else None
        failure = ""
        try:
            _create(file)
            file.chmod(int(mode) & 0o777)
        except (OSError, ValueError) as e:
            failure = f"couldn't create file: {e.strerror if isinstance(e, OSError) else e}"
        received = 0
        while True:
            kind, length = _WORD.unpack(await self._take(_WORD.size))
            if kind == b"DONE":
                break
            if kind != b"DATA" or length > _LONGEST_DATA:
                await self._fail("invalid data message")
                return
            data = await self._take(length)
            received += length
            await self._stream.received(length)
            if failure:
                continue
            if room is not None and full is not None and received > room:
                self._faults.fired(full)
                failure = "couldn't write to file: No space left on device"
                file.unlink(missing_ok=True)
                await self._fail(failure)
                continue
            with file.open("ab") as out:
                out.write(data)
        if failure and room is not None and received > room:
            return  # the failure has been sent already
        if failure:
            await self._fail(failure)
            return
        self._corrupt(file)
        os.utime(file, (length, length))
        await self._stream.write(_WORD.pack(b"OKAY", 0))

    def _corrupt(self, file: Path) -> None:
        """``wrong_digest``: one byte differs, the size does not."""
        fault = self._faults.find({"wrong_digest"}, self._stream.label)
        data = bytearray(file.read_bytes())
        if fault is not None and data:
            self._faults.fired(fault)
            data[len(data) // 2] ^= 0x01
            file.write_bytes(data)

    async def _fail(self, reason: str) -> None:
        text = reason.encode()
        await self._stream.write(_WORD.pack(b"FAIL", len(text)) + text)

    async def _take(self, count: int) -> bytes:
        return await self._stream.read_exactly(count, self._pending)


def _create(file: Path) -> None:
    """As adbd does: folders are made only after the file could not be."""
    try:
        file.write_bytes(b"")
    except FileNotFoundError:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")


def _numbers(path: Path) -> tuple[int, int, int]:
    """(mode, size, mtime) as the protocol has them; zeros when the file is missing."""
    try:
        found = path.lstat()
    except OSError:
        return 0, 0, 0
    return found.st_mode, found.st_size & 0xFFFFFFFF, int(found.st_mtime) & 0xFFFFFFFF
