"""A TCP port that stays ours while nothing listens on it, as a phone's address does while it reboots."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from orchestrator.domain.errors import InfraError, UsageError

Accept = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_HOST = "127.0.0.1"
_ADOPTED = range(5554, 5586)
"""An adb server takes whatever listens there for an emulator and lists it by itself."""
_TRIES = 8
_HIGHEST_PORT = 65535


class Listener:
    """``open`` and ``close`` any number of times; a closed one refuses connections at once."""

    def __init__(self, port: int) -> None:
        """``port`` 0 takes a free one, outside those that an adb server adopts.

        Raises:
            UsageError: there is no such port.
            InfraError: the port is taken.
        """
        if not 0 <= port <= _HIGHEST_PORT:
            raise UsageError(f"virtual phone: port {port}: choose 1 to {_HIGHEST_PORT}, or 0 for a free one.")
        try:
            self._place = _reserve(port)
        except OSError as e:
            raise InfraError(
                f"virtual phone: cannot listen on {_HOST}:{port} ({e.strerror}). Choose another port."
            ) from e
        self.port = int(self._place.getsockname()[1])
        self._server: asyncio.Server | None = None

    async def open(self, accept: Accept) -> None:
        self._server = await asyncio.start_server(accept, _HOST, self.port, reuse_port=True)

    def close(self) -> None:
        """Established connections are not touched."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def release(self) -> None:
        """Give the port back."""
        self.close()
        self._place.close()


def _reserve(port: int) -> socket.socket:
    """A socket bound to the port that does not listen."""
    wanted = port
    for _ in range(_TRIES):
        with socket.socket() as probe:  # SO_REUSEPORT below would share the port of another phone
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((_HOST, port))
            wanted = int(probe.getsockname()[1])
        if port or wanted not in _ADOPTED:
            break
    place = socket.socket()
    try:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind((_HOST, wanted))
    except OSError:
        place.close()
        raise
    return place
