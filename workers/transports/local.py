"""The machine's own GPU: commands are child processes, files are files. No shell is involved."""

import contextlib
import hashlib
import os
import platform
import selectors
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import IO

import platformdirs

from orchestrator.domain.errors import NoSpace, NotInstalled, TransferFailed
from workers.lifetime import death_signal
from workers.transports.base import MAX_PULL_BYTES, CommandResult
from workers.transports.deadline import Deadline, IdleWatch
from workers.transports.lines import LineSplitter, Whole
from workers.transports.paths import absolute, below, environment_name

_CHUNK = 1 << 20
_STDERR_BYTES = 4096
_REAP_S = 10.0
"""A process that was sent SIGKILL and is not gone by then sits in the kernel (a driver hang)."""


class LocalDevice:
    """Implements :class:`workers.transports.base.Device` on this machine."""

    def __init__(self, workdir: Path | None = None, serial: str = "") -> None:
        """``workdir``: Tilefarm's own folder, by default below the user's cache folder; ``serial``: which of
        this machine's GPUs it serves, by default the machine's name."""
        folder = workdir or platformdirs.user_cache_path("tilefarm") / "local"
        folder.mkdir(parents=True, exist_ok=True)
        self._workdir = folder.resolve()
        self._serial = serial or platform.node() or "localhost"

    @property
    def serial(self) -> str:
        return self._serial

    @property
    def workdir(self) -> str:
        return str(self._workdir)

    def run(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        watch = IdleWatch(Deadline.after(timeout_s, f"{self.serial}: {argv[0]}"), None)
        said = Whole(watch.total.what)
        with tempfile.TemporaryFile() as errors:
            code = self._execute(argv, said.feed, watch, env, errors)
            size = errors.seek(0, os.SEEK_END)
            errors.seek(max(0, size - _STDERR_BYTES))
            return CommandResult(code, said.data, errors.read())

    def stream(
        self,
        argv: Sequence[str],
        on_line: Callable[[bytes], None],
        *,
        timeout_s: float,
        idle_timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> int:
        watch = IdleWatch(Deadline.after(timeout_s, f"{self.serial}: {argv[0]}"), idle_timeout_s)
        lines = LineSplitter(on_line, watch.total.what)
        code = self._execute(argv, lines.feed, watch, env)
        lines.close()
        return code

    def push(self, data: bytes, path: str, *, timeout_s: float, mode: int = 0o644) -> None:
        target = Path(absolute(path))
        deadline = Deadline.after(timeout_s, f"{self.serial}: push {path}")
        partial = target.with_name(f".{uuid.uuid4().hex}.part")
        with _reasons(f"{self.serial}: push {path}"):
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_dir():
                raise TransferFailed(f"{self.serial}: push {path}: a folder is in the way")
            try:
                with partial.open("wb") as out:
                    for start in range(0, len(data), _CHUNK):
                        deadline.left()
                        out.write(data[start : start + _CHUNK])
                written = b"".join(_chunks(partial, deadline))
                if hashlib.sha256(written).digest() != hashlib.sha256(data).digest():
                    raise TransferFailed(f"{self.serial}: push {path}: the file on disk has another digest")
                partial.chmod(mode)
                partial.replace(target)
            finally:
                partial.unlink(missing_ok=True)

    def pull(self, path: str, *, timeout_s: float, at_most: int = MAX_PULL_BYTES) -> bytes:
        deadline = Deadline.after(timeout_s, f"{self.serial}: pull {path}")
        source = Path(absolute(path))
        with _reasons(f"{self.serial}: pull {path}"):
            size = source.stat().st_size
            if size > at_most:
                raise TransferFailed(
                    f"{self.serial}: pull {path}: {size} bytes, at most {at_most} are wanted"
                )
            data = b"".join(_chunks(source, deadline))
        if len(data) != size:
            raise TransferFailed(f"{self.serial}: pull {path}: {len(data)} bytes, expected {size}")
        return data

    def list_dir(self, path: str, *, timeout_s: float) -> Mapping[str, int]:
        deadline = Deadline.after(timeout_s, f"{self.serial}: list {path}")
        folder = Path(absolute(path))
        found: dict[str, int] = {}
        if folder.is_dir():
            for entry in os.scandir(folder):
                deadline.left()
                if entry.is_file(follow_symlinks=False):
                    found[entry.name] = entry.stat(follow_symlinks=False).st_size
        return found

    def remove(self, path: str, *, timeout_s: float) -> None:
        Deadline.after(timeout_s, f"{self.serial}: remove {path}").left()
        target = Path(below(self.workdir, path))
        with _reasons(f"{self.serial}: remove {path}"):
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)

    def properties(self, *, timeout_s: float) -> Mapping[str, str]:
        """Under Android's names where they mean the same; no ABI, since no Android build runs here."""
        Deadline.after(timeout_s, f"{self.serial}: properties").left()
        facts = {
            "ro.product.model": platform.node(),
            "ro.build.fingerprint": f"{_os_name()} {platform.release()}",
            "host.machine": platform.machine(),
            "host.kernel": platform.release(),
            "host.cpus": str(os.cpu_count() or ""),
        }
        return {name: value for name, value in facts.items() if value}

    def _execute(
        self,
        argv: Sequence[str],
        sink: Callable[[bytes], None],
        watch: IdleWatch,
        env: Mapping[str, str] | None,
        errors: IO[bytes] | int = subprocess.DEVNULL,
    ) -> int:
        """Run in a process group of its own, which is killed unless the command ended by itself."""
        extra = {environment_name(name): value for name, value in (env or {}).items()}
        process = subprocess.Popen(
            [*_dies_with_us(), *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=self._workdir,
            env={**os.environ, **extra},
            start_new_session=True,
        )
        ended = False
        try:
            if process.stdout is None:
                raise AssertionError("stdout was asked for as a pipe")
            with process.stdout as out, selectors.DefaultSelector() as ready:
                ready.register(out, selectors.EVENT_READ)
                while True:
                    if not ready.select(watch.left()):
                        continue  # the deadline has passed: left() raises
                    data = os.read(out.fileno(), _CHUNK)
                    if not data:
                        break
                    watch.heard()
                    sink(data)
            code = _wait(process, watch)
            ended = True
        finally:
            if not ended:
                _kill_group(process)
        return 128 - code if code < 0 else code


def _wait(process: subprocess.Popen[bytes], watch: IdleWatch) -> int:
    """Exit code of a process that closed its output."""
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(watch.left())


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the group that was started for the command, and to nothing else."""
    if process.returncode is None:  # not reaped, so that the group's number is still ours
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_S)


def _dies_with_us() -> list[str]:
    """What runs is killed when this worker dies, even by SIGKILL: the next one measures on the same GPU."""
    words = death_signal("KILL")
    if not words:
        raise NotInstalled("setpriv is not on PATH. Install it: apt install util-linux")
    return words


@contextlib.contextmanager
def _reasons(what: str) -> Generator[None]:
    try:
        yield
    except OSError as e:
        kind = NoSpace if e.errno in (ENOSPC, EDQUOT) else TransferFailed
        raise kind(f"{what}: {e.strerror or e}") from e


def _chunks(path: Path, deadline: Deadline) -> Iterator[bytes]:
    with path.open("rb") as source:
        while chunk := source.read(_CHUNK):
            deadline.left()
            yield chunk


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()
