"""What the adb protocols below need from a connection; ``adb.py`` makes it from adbutils."""

from typing import Protocol


class Link(Protocol):
    """One service on one phone, through the adb server."""

    def recv(self, limit: int, left_s: float, /) -> bytes:
        """At least one byte, or empty at the end. Raises TimeoutError after ``left_s``."""
        ...

    def send_all(self, data: bytes, left_s: float) -> None:
        """All of it. Raises TimeoutError after ``left_s``, DeviceLost when the link is gone."""
        ...

    def readable(self) -> bool:
        """True when ``recv`` would not wait."""
        ...
