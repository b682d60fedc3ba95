"""Takes a byte stream as it comes, in lines or whole, and never more of it than was agreed."""

from collections.abc import Callable

from orchestrator.domain.errors import TruncatedOutput

MAX_LINE_BYTES = 1 << 20
MAX_OUTPUT_BYTES = 16 << 20
"""Of a command whose output is kept whole: a probe or a getprop has some hundred KiB."""


class LineSplitter:
    """Hands over each line with its LF as soon as it is complete; ``close`` hands over the rest."""

    def __init__(self, on_line: Callable[[bytes], None], what: str = "output") -> None:
        self._on_line = on_line
        self._what = what
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> None:
        """
        Raises:
            TruncatedOutput: a line has no end, for longer than any line of ours.
        """
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._parts.append(data[start : end + 1])
            start = end + 1
            self.close()
        if start < len(data):
            self._parts.append(data[start:])
            self._held += len(data) - start
            if self._held > MAX_LINE_BYTES:
                raise TruncatedOutput(f"{self._what}: {self._held} bytes without the end of a line")

    def close(self) -> None:
        if self._parts:
            line = b"".join(self._parts)
            self._parts.clear()
            self._held = 0
            self._on_line(line)


class Whole:
    """Keeps the output of a command."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        """
        Raises:
            TruncatedOutput: it is more than anything that we ask a device for.
        """
        self._size += len(data)
        if self._size > MAX_OUTPUT_BYTES:
            raise TruncatedOutput(f"{self._what}: more than {MAX_OUTPUT_BYTES} bytes of output")
        self._parts.append(data)

    @property
    def data(self) -> bytes:
        return b"".join(self._parts)
