"""Files through adb's sync service: SEND, RECV, STAT and LIST with one deadline a call.

Protocol: SYNC.TXT of Android's adb. Every request is a four-letter id, a little-endian length and a path.
"""

import stat
import struct
from collections.abc import Mapping

from orchestrator.domain.errors import NoSpace, TransferFailed, TruncatedOutput
from workers.transports.adb_link import Link
from workers.transports.deadline import Deadline

_CHUNK = 64 * 1024
"""adbd refuses larger DATA blocks."""
_WORD = struct.Struct("<4sI")
_STAT = struct.Struct("<III")
_ENTRY = struct.Struct("<IIII")
_LONGEST_NAME = 1024
_MOST_FILES = 200_000
"""In one folder. Blobs of a full cache are some ten thousand."""
_SIZE_MODULUS = 1 << 32
"""STAT of old phones tells the size modulo 2^32."""


class Sync:
    """One open sync service; closed by closing its link."""

    def __init__(self, link: Link, deadline: Deadline) -> None:
        self._link = link
        self._deadline = deadline

    def send(self, path: str, data: bytes, mtime: int) -> None:
        """Write a file with mode 0644; the phone makes its folders.

        Raises:
            NoSpace, TransferFailed: with the phone's reason.
        """
        self._request(b"SEND", f"{path},{stat.S_IFREG | 0o644}".encode())
        for start in range(0, len(data), _CHUNK):
            if self._link.readable():  # a phone that already says FAIL reads on only to throw away
                break
            chunk = data[start : start + _CHUNK]
            self._send(_WORD.pack(b"DATA", len(chunk)) + chunk)
        else:
            self._send(_WORD.pack(b"DONE", mtime))
        kind, length = self._word()
        if kind != b"OKAY":
            raise self._failure(kind, length)

    def recv(self, path: str, at_most: int) -> bytes:
        """Whole file; its size is compared with STAT.

        Raises:
            TransferFailed: missing, or longer than ``at_most`` bytes, whatever STAT says.
        """
        mode, size = self.stat(path)
        if mode == 0:
            raise TransferFailed(f"{self._deadline.what}: no such file, or it may not be read")
        if stat.S_ISDIR(mode):
            raise TransferFailed(f"{self._deadline.what}: is a folder")
        self._request(b"RECV", path.encode())
        parts: list[bytes] = []
        room = at_most
        while True:
            kind, length = self._word()
            if kind == b"DONE":
                break
            if kind != b"DATA":
                raise self._failure(kind, length)
            room -= length
            if room < 0:
                raise TransferFailed(
                    f"{self._deadline.what}: longer than the {at_most} bytes that are wanted"
                )
            parts.append(self._exactly(length))
        data = b"".join(parts)
        if len(data) % _SIZE_MODULUS != size:
            raise TransferFailed(f"{self._deadline.what}: {len(data)} bytes came, the phone says {size}")
        return data

    def stat(self, path: str) -> tuple[int, int]:
        """(mode, size modulo 2^32); mode 0 when the file is missing."""
        self._request(b"STAT", path.encode())
        kind = self._exactly(4)
        if kind != b"STAT":
            raise TransferFailed(f"{self._deadline.what}: answered STAT with {kind!r}")
        mode, size, _mtime = _STAT.unpack(self._exactly(_STAT.size))
        return mode, size

    def list_files(self, path: str) -> Mapping[str, int]:
        """Plain files in a folder → size; empty when the folder is missing."""
        self._request(b"LIST", path.encode())
        found: dict[str, int] = {}
        while True:
            kind = self._exactly(4)
            mode, size, _mtime, length = _ENTRY.unpack(self._exactly(_ENTRY.size))
            if kind == b"DONE":
                return found
            if kind != b"DENT":
                raise TransferFailed(f"{self._deadline.what}: answered LIST with {kind!r}")
            if length > _LONGEST_NAME or len(found) == _MOST_FILES:
                raise TransferFailed(f"{self._deadline.what}: a name of {length} bytes, or too many files")
            name = self._exactly(length)
            if b"/" in name or b"\0" in name:
                raise TransferFailed(f"{self._deadline.what}: {name[:80]!r} is no name of a file")
            if stat.S_ISREG(mode):
                found[name.decode("utf-8", "surrogateescape")] = size

    def _request(self, kind: bytes, body: bytes) -> None:
        self._send(_WORD.pack(kind, len(body)) + body)

    def _send(self, data: bytes) -> None:
        self._link.send_all(data, self._deadline.left())

    def _word(self) -> tuple[bytes, int]:
        kind, length = _WORD.unpack(self._exactly(_WORD.size))
        return kind, length

    def _exactly(self, count: int) -> bytes:
        parts: list[bytes] = []
        missing = count
        while missing:
            data = self._link.recv(min(missing, 1 << 20), self._deadline.left())
            if not data:
                raise TruncatedOutput(f"{self._deadline.what}: the link dropped in the middle. Try again.")
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def _failure(self, kind: bytes, length: int) -> TransferFailed:
        if kind != b"FAIL":
            return TransferFailed(f"{self._deadline.what}: answered {kind!r}")
        reason = self._exactly(min(length, _CHUNK)).decode("utf-8", "replace")
        return failure(self._deadline.what, reason)


def failure(what: str, reason: str) -> TransferFailed:
    """The error for a phone's own words."""
    if "no space" in reason.lower() or "quota exceeded" in reason.lower():
        return NoSpace(f"{what}: {reason}. Free space on the phone.")
    return TransferFailed(f"{what}: {reason}")
