"""Commands through adb's shell services, with a proven exit status and a known process id.

Android 7 and later speak ``shell_v2``: packets of stdout, stderr and the exit status. Older ones answer
with one plain stream, often with CR LF line ends from the pseudo terminal, and no status; there a marker
with a nonce is echoed after the command. Either way the first line tells the process id on the phone, so
that the process can be ended when a deadline passes.
"""

import re
import shlex
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence

from orchestrator.domain.errors import TruncatedOutput
from workers.transports.adb_link import Link
from workers.transports.deadline import IdleWatch
from workers.transports.paths import environment_name

Sink = Callable[[bytes], None]

_STDOUT, _EXIT, _CLOSE_STDIN = 1, 3, 4
_PACKET = struct.Struct("<BI")
_CHUNK = 1 << 16
_LONGEST_GREETING = 1 << 15
"""What a phone's shell may say before it starts a command: some print a banner."""
_LONGEST_PACKET = 1 << 24
_HEADER = 'echo "$0 $$"; exec "$@"'
"""Run by ``sh -c HEADER NONCE ARGV…``: prints the nonce and the pid, then becomes the command."""

_KILL = (
    'group() { read -r line < "/proc/$1/stat" || exit 0; set -- ${line##*) }; echo "$3"; }; '
    'theirs=$(group "$1"); [ "$theirs" ] || exit 0; '
    'case "$theirs" in "$(group $$)"|0|1) ;; *) kill -9 "-$theirs" ;; esac; kill -9 "$1"'
)
"""Ends the process group of a pid, then the pid itself.

adbd makes each service a session of its own; should a phone's adbd not, the group is that of this very
shell and is left alone. The command's name in /proc/PID/stat may hold anything, so fields are counted after
its last ``)``: state, parent, group."""


def kill_argv(pid: int) -> list[str]:
    return ["sh", "-c", _KILL, "sh", str(pid)]


class NewlineFilter:
    """Undoes a terminal's LF → CR LF exactly: each CR LF becomes LF, a CR before it stays."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._held = b""

    def feed(self, data: bytes) -> None:
        data = self._held + data
        self._held = b"\r" if data.endswith(b"\r") else b""
        body = data[: len(data) - len(self._held)].replace(b"\r\n", b"\n")
        if body:
            self._sink(body)

    def close(self) -> None:
        if self._held:
            held, self._held = self._held, b""
            self._sink(held)


class Header:
    """Takes the first line off the output: it tells the process id and the line end of this shell.

    Output after a header that ended in CR LF passes a :class:`NewlineFilter`."""

    def __init__(self, nonce: str, sink: Sink) -> None:
        self._pattern = re.compile(rb"%s (\d{1,10})(\r?)\n" % nonce.encode())
        self._sink = sink
        self._filter = NewlineFilter(sink)
        self._seen = b""
        self._crlf = False
        self.pid = 0

    def feed(self, data: bytes) -> None:
        if not self.pid:
            self._seen += data
            match = self._pattern.search(self._seen)
            if match is None:
                if len(self._seen) > _LONGEST_GREETING:
                    self.check("shell")
                return
            self.pid, self._crlf = int(match[1]), bool(match[2])
            data, self._seen = self._seen[match.end() :], b""
        if data:
            (self._filter.feed if self._crlf else self._sink)(data)

    def close(self) -> None:
        self._filter.close()

    def check(self, what: str) -> None:
        """
        Raises:
            TruncatedOutput: the shell ended without ever starting the command.
        """
        if not self.pid:
            said = self._seen[:300].decode("utf-8", "replace").strip() or "it said nothing"
            raise TruncatedOutput(f"{what}: the phone's shell did not start it: {said}")


class MarkerTail:
    """Passes output on, holding back only what may be the final ``NONCE:STATUS`` line."""

    def __init__(self, nonce: str, sink: Sink) -> None:
        self._nonce = nonce.encode()
        self._partial = re.compile(rb"%s(:(\d{0,3}\n?)?)?\Z" % self._nonce)
        self._whole = re.compile(rb"%s:(\d{1,3})\n\Z" % self._nonce)
        self._sink = sink
        self._held = b""

    def feed(self, data: bytes) -> None:
        data = self._held + data
        cut = self._cut(data)
        self._held = data[cut:]
        if cut:
            self._sink(data[:cut])

    def _cut(self, data: bytes) -> int:
        start = data.rfind(self._nonce)
        if start >= 0 and self._partial.match(data, start):
            return start
        for length in range(min(len(self._nonce) - 1, len(data)), 0, -1):
            if data.endswith(self._nonce[:length]):
                return len(data) - length
        return len(data)

    def close(self) -> int | None:
        """Exit status, or None when the output ended without a whole marker."""
        match = self._whole.match(self._held)
        if match:
            return int(match[1])
        if self._held:
            self._sink(self._held)
        return None


class ShellCommand:
    """One command: its text for either kind of shell service, and the reading of its answer."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str] | None, sink: Sink) -> None:
        self._nonce = uuid.uuid4().hex
        words = [f"{environment_name(name)}={shlex.quote(value)}" for name, value in (env or {}).items()]
        words += map(shlex.quote, ["sh", "-c", _HEADER, self._nonce, *argv])
        self._line = " ".join(words)
        self._tail = MarkerTail(self._nonce, sink)
        self._sink = sink
        self._header: Header | None = None

    @property
    def pid(self) -> int:
        """Process id on the phone; 0 until it is known."""
        return self._header.pid if self._header else 0

    def service(self, *, v2: bool) -> str:
        """Name of the adb service that runs it. Without v2 a marker with the exit status follows."""
        if v2:
            return f"shell,v2,raw:{self._line}"
        return f"shell:{self._line} </dev/null 2>/dev/null; echo {self._nonce}:$?"

    def read_v2(self, link: Link, watch: IdleWatch, what: str) -> int:
        """Packets until the exit packet; standard error is dropped. Returns the exit status.

        Raises:
            TruncatedOutput: the stream ended before the exit packet.
        """
        self._header = Header(self._nonce, self._sink)
        link.send_all(_PACKET.pack(_CLOSE_STDIN, 0), watch.left())
        pending = bytearray()
        while True:
            data = _hear(link, watch)
            if not data:
                raise TruncatedOutput(f"{what}: the link dropped before the exit status. Run it again.")
            pending += data
            while len(pending) >= _PACKET.size:
                kind, length = _PACKET.unpack_from(pending)
                if length > _LONGEST_PACKET:
                    raise TruncatedOutput(f"{what}: a shell packet of {length} bytes: the stream is damaged.")
                if len(pending) < _PACKET.size + length:
                    break
                payload = bytes(pending[_PACKET.size : _PACKET.size + length])
                del pending[: _PACKET.size + length]
                if kind == _EXIT:
                    self._header.check(what)
                    return payload[0] if payload else 255
                if kind == _STDOUT:
                    self._header.feed(payload)

    def read_v1(self, link: Link, watch: IdleWatch, what: str) -> int:
        """The plain stream to its end. Returns the exit status.

        Raises:
            TruncatedOutput: the stream ended before the marker.
        """
        self._header = Header(self._nonce, self._tail.feed)
        while data := _hear(link, watch):
            self._header.feed(data)
        self._header.close()
        status = self._tail.close()
        if status is None:
            raise TruncatedOutput(f"{what}: the link dropped before the exit status. Run it again.")
        return status


def _hear(link: Link, watch: IdleWatch) -> bytes:
    """The next bytes; empty at the end. Raises DeadlineExceeded, which tells silence from slowness."""
    while True:
        try:
            data = link.recv(_CHUNK, watch.left())
        except TimeoutError:
            continue  # left() raises
        watch.heard()
        return data
