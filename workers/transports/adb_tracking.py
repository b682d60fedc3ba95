"""The adb server's list as it changes, over restarts of the server, which is never ended from here."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import structlog

from orchestrator.domain.errors import DeadlineExceeded, InfraError, NotInstalled
from workers.transports.adb import AdbServer
from workers.transports.adb_listing import PhoneListing, is_address, parse_listing
from workers.transports.adb_server import start_server
from workers.transports.deadline import Deadline

QUIET_S = 30.0
"""The server speaks only when something changes: so often the list is read anew all the same, since a server
that was replaced by another one on the same port may leave a dead connection."""
RETRY_S = 1.0
log = structlog.get_logger()

OnList = Callable[[Sequence[PhoneListing], str], None]
"""Rows, which tell network phones, and the server's address with its version."""


class Tracker:
    """A thread that follows one server."""

    def __init__(self, server: AdbServer, on_list: OnList, on_lost: Callable[[str], None]) -> None:
        """``on_lost`` is told why no server answers; both are called from the thread."""
        self._server = server
        self._on_list = on_list
        self._on_lost = on_lost
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="adb-list", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """The thread ends when its present read does; it holds nothing that must be given back."""
        self._stop.set()

    def _follow(self) -> None:
        """Until ``stop``, whatever happens: adb may be missing for a moment while it is being upgraded."""
        while not self._stop.is_set():
            try:
                start_server(self._server)
                self._listen()
                continue
            except (InfraError, NotInstalled) as e:
                self._on_lost(str(e))
            except Exception as e:
                log.exception("unexpected; the list is asked for again")
                self._on_lost(f"{type(e).__name__}: {e}")
            self._stop.wait(RETRY_S)

    def _listen(self) -> None:
        """One connection, for a while."""
        about = f"{self._server}, version {self._server.version()}"
        network: dict[str, bool] = {}
        with self._server.open(Deadline.after(QUIET_S, f"{self._server}: list")) as connection:
            connection.ask("host:track-devices")
            while not self._stop.is_set():
                try:
                    text = connection.read_string_block()
                except (TimeoutError, DeadlineExceeded):
                    return
                rows = parse_listing(text)
                network = self._network(rows, network)
                self._on_list([replace(row, network=network.get(row.serial)) for row in rows], about)

    def _network(self, rows: Sequence[PhoneListing], known: Mapping[str, bool]) -> dict[str, bool]:
        """Of usable phones whose serial is an address; one that stays in the list is asked for once."""
        found: dict[str, bool] = {}
        for serial in (row.serial for row in rows if row.usable and is_address(row.serial)):
            told = known.get(serial)
            told = self._server.over_network(serial) if told is None else told
            if told is not None:
                found[serial] = told
        return found
