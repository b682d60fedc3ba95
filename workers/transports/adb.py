"""Phones through an adb server. The only file that imports adbutils, and it closes adbutils' gaps.

adbutils' timeouts are per read and it starts a server whenever none answers; here every read gets what is
left of one deadline, and a server is started only by ``adb_server.start_server``.
"""

import select
import socket
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from adbutils import AdbConnection, AdbError, AdbTimeout

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.errors import (
    DeadlineExceeded,
    DeviceLost,
    InfraError,
    TransferFailed,
)
from workers.transports.adb_listing import PhoneListing, is_address, parse_listing
from workers.transports.adb_push import PROVEN, UNTOLD, WRONG_DIGEST, check_finished, finish_argv
from workers.transports.adb_shell import ShellCommand, kill_argv
from workers.transports.adb_sync import Sync
from workers.transports.base import MAX_PULL_BYTES, CommandResult
from workers.transports.deadline import Deadline, IdleWatch
from workers.transports.getprop import parse_properties
from workers.transports.lines import LineSplitter, Whole
from workers.transports.paths import absolute, below

DEFAULT_PORT = 5037
_SERVER_S = 10.0
"""The server is on this machine or near it: it answers questions about itself at once."""
_CLEAN_UP_S = 5.0
"""A call to a phone that has stalled altogether ends this much after its own deadline at the latest."""
_LONGEST_SERVICE = 0xFFFF
"""Its length travels as four hex digits: a longer one would be read as a shorter one and something else."""


class _Connection(AdbConnection):
    """A socket to the server whose every read and write has what is left of one deadline."""

    def __init__(self, server: "AdbServer", deadline: Deadline) -> None:
        self._server = server
        self.deadline = deadline
        super().__init__(server.host, server.port)

    def _safe_connect(self) -> socket.socket:
        """Connect, and never start a server: adbutils would."""
        conn = socket.create_connection((self._server.host, self._server.port), self.deadline.left())
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return conn

    def _read_fully(self, n: int) -> bytes:
        parts: list[bytes] = []
        while n > 0 and (data := self.recv(n, self.deadline.left())):
            parts.append(data)
            n -= len(data)
        return b"".join(parts)

    def read_string_block(self) -> str:
        """adbutils returns half a block as if it were whole."""
        head = self._read_fully(4)
        try:
            size = int(head, 16)
        except ValueError:
            raise AdbError(f"not an answer of adb: {head!r}") from None
        body = self._read_fully(size)
        if len(body) < size:
            raise AdbError(f"the server hung up after {len(body)} of {size} bytes")
        return body.decode("utf-8", "replace")

    def recv(self, n: int, left_s: float | None = None) -> bytes:
        self.conn.settimeout(left_s if left_s is not None else self.deadline.left())
        # The server writes small pieces and waits for their acknowledgement (Nagle), which Linux delays by
        # 40 ms unless it is told each time not to: a listing took 44 ms instead of 1.
        self.conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return self.conn.recv(n)

    def send_all(self, data: bytes, left_s: float) -> None:
        self.conn.settimeout(left_s)
        self.conn.sendall(data)

    def readable(self) -> bool:
        return bool(select.select([self.conn], [], [], 0)[0])

    def ask(self, service: str) -> None:
        body = service.encode("utf-8", "surrogateescape")
        if len(body) > _LONGEST_SERVICE:
            raise InfraError(f"{self.deadline.what}: {len(body)} bytes are too long a command for adb")
        self.send_all(b"%04x" % len(body) + body, self.deadline.left())
        self.check_okay()

    def close(self) -> None:
        self.conn.close()


@dataclass(frozen=True, slots=True)
class AdbServer:
    """Address of an adb server; every question opens a connection of its own."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        return f"adb server {self.host}:{self.port}"

    @contextmanager
    def open(self, deadline: Deadline) -> Generator[_Connection]:
        """A connection, with the errors of adbutils and sockets turned into ours.

        Raises:
            InfraError: no server there; says how to start one.
        """
        try:
            connection = _Connection(self, deadline)
        except TimeoutError as e:
            raise deadline.exceeded() from e
        except OSError as e:
            raise InfraError(
                f"{self}: none answers ({e.strerror or e}). Start it: adb -P {self.port} start-server; "
                "or set ANDROID_ADB_SERVER_PORT (ADB_SERVER_SOCKET) to the one that runs."
            ) from e
        with connection, _translated(deadline):
            yield connection

    def version(self, timeout_s: float = _SERVER_S) -> int:
        """41 for 1.0.41. Another client may replace the server: an agent reads it anew each time it begins to
        follow the list, which is after each restart and after 30 s without a change."""
        text = self._ask("host:version", timeout_s)
        try:
            return int(text, 16)
        except ValueError:
            raise InfraError(f"{self}: answered its version with {text!r}. Is it an adb server?") from None

    def list_text(self, timeout_s: float = _SERVER_S) -> str:
        return self._ask("host:devices", timeout_s)

    def connect_phone(self, address: str, timeout_s: float = 30.0) -> None:
        """``adb connect``; a phone that asks for this host's key may be answered within the time.

        Raises:
            DeviceLost: with the server's reason.
        """
        deadline = Deadline.after(timeout_s, f"{address}: connect")
        answer = self._ask(f"host:connect:{address}", timeout_s)
        if answer.startswith("failed to authenticate"):
            self._wait_for_key(address, deadline)
        elif not answer.startswith(("connected to", "already connected to")):
            raise DeviceLost(f"{address}: {answer.strip()}")

    def _wait_for_key(self, address: str, deadline: Deadline) -> None:
        """The server reports a phone that asks as unauthorized until it has accepted."""
        with self.open(deadline) as connection:
            connection.ask("host:track-devices")
            try:
                while True:
                    rows = parse_listing(connection.read_string_block())
                    if any(row.serial == address and row.usable for row in rows):
                        return
            except (AdbTimeout, TimeoutError, DeadlineExceeded) as e:
                raise DeviceLost(
                    f"{address}: unauthorized: accept this host's key on the phone's screen, then run again"
                ) from e

    def disconnect_phone(self, address: str, timeout_s: float = _SERVER_S) -> None:
        """``adb disconnect``; an address that is not connected is no error."""
        with suppress(DeviceLost):
            self._ask(f"host:disconnect:{address}", timeout_s)

    def reconnect_phone(self, serial: str, timeout_s: float = _SERVER_S) -> None:
        """``adb reconnect`` of one phone: its transport is dropped and found anew; others notice nothing."""
        service = _of(serial, "reconnect")
        with self.open(Deadline.after(timeout_s, f"{serial}: reconnect")) as connection:
            connection.ask(service)

    def over_network(self, serial: str, timeout_s: float = _SERVER_S) -> bool | None:
        """Whether this server opened the link to a phone itself, to the address that is its serial.

        A serial on USB is the phone's own word and may read as any address. The server knows the port of what
        hangs there (``usb:1-4``), whatever the phone says. None: it does not tell now, as for phones that it
        does not list as ``device``.
        """
        if not is_address(serial):
            return False
        try:
            return self._ask(_of(serial, "get-devpath"), timeout_s) == "unknown"
        except DeviceLost:
            return None

    def _ask(self, service: str, timeout_s: float) -> str:
        with self.open(Deadline.after(timeout_s, f"{self}: {service}")) as connection:
            connection.ask(service)
            return connection.read_string_block()


def _of(serial: str, question: str) -> str:
    """A service of the server about one phone.

    Raises:
        InfraError: adb would take a piece of the serial for the question.
    """
    if ":" in serial and not is_address(serial):
        raise InfraError(
            f"serial {serial!r}: it has a colon and is no HOST:PORT, so adb is not asked {question}"
        )
    return f"host-serial:{serial}:{question}"


def list_phones(server: AdbServer) -> list[PhoneListing]:
    """Every row of the server's list, usable or not."""
    return parse_listing(server.list_text(_SERVER_S))


class AdbDevice:
    """Implements :class:`workers.transports.base.Device` on a phone that an adb server lists."""

    def __init__(self, server: AdbServer, serial: str, workdir: str = "/data/local/tmp/tilefarm") -> None:
        self._server = server
        self._serial = serial
        self._workdir = absolute(workdir)

    @property
    def serial(self) -> str:
        return self._serial

    @property
    def workdir(self) -> str:
        return self._workdir

    def run(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        watch = IdleWatch(self._deadline(timeout_s, argv[0]), None)
        said = Whole(watch.total.what)
        code = self._execute(argv, said.feed, watch, env)
        return CommandResult(code, said.data)

    def stream(
        self,
        argv: Sequence[str],
        on_line: Callable[[bytes], None],
        *,
        timeout_s: float,
        idle_timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> int:
        watch = IdleWatch(self._deadline(timeout_s, argv[0]), idle_timeout_s)
        lines = LineSplitter(on_line, watch.total.what)
        code = self._execute(argv, lines.feed, watch, env)
        lines.close()
        return code

    def push(self, data: bytes, path: str, *, timeout_s: float, mode: int = 0o644) -> None:
        deadline = self._deadline(timeout_s, f"push {path}")
        folder, _, _ = absolute(path).rpartition("/")
        partial = f"{folder}/.{uuid.uuid4().hex}.part"
        try:
            self._send(partial, data, deadline)
            said = self._run_finish(finish_argv(partial, path, sha256_hex(data), mode), deadline)
            if said == UNTOLD:
                if self._receive(partial, deadline, len(data)) != data:
                    said = WRONG_DIGEST
                else:
                    said = self._run_finish(finish_argv(partial, path, PROVEN, mode), deadline)
            check_finished(said, deadline.what)
        except InfraError:
            self._clean_up(["rm", "-f", partial])
            raise

    def pull(self, path: str, *, timeout_s: float, at_most: int = MAX_PULL_BYTES) -> bytes:
        return self._receive(absolute(path), self._deadline(timeout_s, f"pull {path}"), at_most)

    def list_dir(self, path: str, *, timeout_s: float) -> Mapping[str, int]:
        deadline = self._deadline(timeout_s, f"list {path}")
        with self._service("sync:", deadline) as connection:
            return Sync(connection, deadline).list_files(absolute(path))

    def remove(self, path: str, *, timeout_s: float) -> None:
        target = below(self._workdir, path)
        done = self.run(["sh", "-c", 'rm -rf "$1" 2>&1', "sh", target], timeout_s=timeout_s)
        if done.exit_code != 0:
            said = done.stdout.decode("utf-8", "replace").strip()
            raise TransferFailed(f"{self._serial}: remove {path}: exit code {done.exit_code}: {said}")

    def properties(self, *, timeout_s: float) -> Mapping[str, str]:
        return parse_properties(self.run(["getprop"], timeout_s=timeout_s).stdout)

    def _deadline(self, timeout_s: float, what: str) -> Deadline:
        return Deadline.after(timeout_s, f"{self._serial}: {what}")

    @contextmanager
    def _service(self, service: str, deadline: Deadline) -> Generator[_Connection]:
        with self._server.open(deadline) as connection:
            connection.ask(f"host:transport:{self._serial}")
            connection.ask(service)
            yield connection

    def _features(self, deadline: Deadline) -> list[str]:
        """What server and phone both speak; never cached, since an update of either changes it."""
        with self._service("host:features", deadline) as connection:
            return connection.read_string_block().split(",")

    def _execute(
        self,
        argv: Sequence[str],
        sink: Callable[[bytes], None],
        watch: IdleWatch,
        env: Mapping[str, str] | None,
    ) -> int:
        """Exit code. Closing a service leaves its process running on a phone, so it is ended by its id."""
        what = watch.total.what
        command = ShellCommand(argv, env, sink)
        v2 = "shell_v2" in self._features(watch.total)
        ended = False
        try:
            with self._service(command.service(v2=v2), watch.total) as connection:
                code = (command.read_v2 if v2 else command.read_v1)(connection, watch, what)
            ended = True
        finally:
            if command.pid and not ended:
                self._clean_up(kill_argv(command.pid))
        return code

    def _clean_up(self, argv: Sequence[str]) -> None:
        """Try, with a short deadline of its own, and without cleaning up after the cleaning up.

        A lost phone cannot be asked; then the error that led here is the one to tell."""
        deadline = self._deadline(_CLEAN_UP_S, argv[0])
        command = ShellCommand(argv, None, lambda _output: None)
        with suppress(InfraError):
            v2 = "shell_v2" in self._features(deadline)
            with self._service(command.service(v2=v2), deadline) as connection:
                read = command.read_v2 if v2 else command.read_v1
                read(connection, IdleWatch(deadline, None), deadline.what)

    def _send(self, path: str, data: bytes, deadline: Deadline) -> None:
        with self._service("sync:", deadline) as connection:
            Sync(connection, deadline).send(path, data, int(time.time()))

    def _receive(self, path: str, deadline: Deadline, at_most: int) -> bytes:
        with self._service("sync:", deadline) as connection:
            return Sync(connection, deadline).recv(path, at_most)

    def _run_finish(self, argv: Sequence[str], deadline: Deadline) -> str:
        return self.run(argv, timeout_s=deadline.left()).stdout.decode("utf-8", "replace").strip()


@contextmanager
def _translated(deadline: Deadline) -> Generator[None]:
    try:
        yield
    except (TimeoutError, AdbTimeout) as e:
        raise deadline.exceeded() from e
    except AdbError as e:
        text = str(e) or "the server closed the connection"
        if "unauthorized" in text:
            text = "unauthorized: accept this host's key on the phone's screen, then run again"
        raise DeviceLost(f"{deadline.what}: {text}") from e
    except OSError as e:
        raise DeviceLost(f"{deadline.what}: the link broke ({e.strerror or e})") from e
