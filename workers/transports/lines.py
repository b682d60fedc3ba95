"""Cuts a byte stream into lines, whatever the sizes of its pieces."""

from collections.abc import Callable


class LineSplitter:
    """Hands over each line with its LF as soon as it is complete; ``close`` hands over the rest."""

    def __init__(self, on_line: Callable[[bytes], None]) -> None:
        self._on_line = on_line
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> None:
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._parts.append(data[start : end + 1])
            start = end + 1
            self.close()
        if start < len(data):
            self._parts.append(data[start:])

    def close(self) -> None:
        if self._parts:
            line = b"".join(self._parts)
            self._parts.clear()
            self._on_line(line)
