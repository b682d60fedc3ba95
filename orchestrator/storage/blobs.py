"""Content-addressed blob store over fsspec: shaders, inputs, references, pulled tensors, logs.

A blob's name is its sha256, so writing twice is harmless and a damaged blob is always noticed.
"""

import importlib
import uuid
from typing import Any, Protocol, cast

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.errors import InfraError, UsageError


class _FileSystem(Protocol):
    """The part of fsspec's AbstractFileSystem in use; fsspec ships no types."""

    def exists(self, path: str) -> bool: ...
    def makedirs(self, path: str, exist_ok: bool) -> None: ...
    def pipe_file(self, path: str, value: bytes) -> None: ...
    def cat_file(self, path: str, start: int | None = None, end: int | None = None) -> bytes: ...
    def mv(self, path1: str, path2: str) -> None: ...


def _open(url: str) -> tuple[_FileSystem, str]:
    core: Any = importlib.import_module("fsspec.core")
    return cast("tuple[_FileSystem, str]", core.url_to_fs(url))


class BlobStore:
    """Blobs below an fsspec URL (``file:///…``, ``s3://…``; the protocol's package must be installed)."""

    def __init__(self, url: str) -> None:
        try:
            self._fs, self._root = _open(url)
        except (ImportError, ValueError) as e:
            raise UsageError(f"blob store {url}: {e}. Set TILEFARM_BLOBS to a reachable fsspec URL") from e
        self.url = url

    def _path(self, digest: str) -> str:
        return f"{self._root}/{digest[:2]}/{digest}"

    def put(self, data: bytes) -> str:
        """Store; returns the digest. Another name first, then a move: no reader sees half a blob."""
        digest = sha256_hex(data)
        path = self._path(digest)
        try:
            if not self._fs.exists(path):
                self._fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
                partial = f"{path}.{uuid.uuid4().hex[:8]}"
                self._fs.pipe_file(partial, data)
                self._fs.mv(partial, path)
        except OSError as e:
            raise InfraError(f"blob store {self.url}: cannot write {digest}: {e}") from e
        return digest

    def has(self, digest: str) -> bool:
        """
        Raises:
            InfraError: nobody can tell.
        """
        try:
            return self._fs.exists(self._path(digest))
        except OSError as e:
            raise InfraError(f"blob store {self.url}: whether {digest} is there cannot be told: {e}") from e

    def get(self, digest: str, *, at_most: int | None = None) -> bytes:
        """The blob, its digest proven.

        Args:
            at_most: bytes; not more than one beyond that is ever read.

        Raises:
            InfraError: missing, unreachable, longer than that or damaged.
        """
        try:
            data = self._fs.cat_file(self._path(digest), end=None if at_most is None else at_most + 1)
        except OSError as e:
            raise InfraError(
                f"blob {digest} cannot be read from {self.url}: {e}. "
                "Workers on other machines need TILEFARM_BLOBS at a place that all of them reach"
            ) from e
        if at_most is not None and len(data) > at_most:
            raise InfraError(f"blob {digest} in {self.url} has more than {at_most} bytes")
        if sha256_hex(data) != digest:
            raise InfraError(f"blob {digest} in {self.url} is damaged; remove it and run again")
        return data
