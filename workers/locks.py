"""Locks of this host that end with their process, however it ends (flock): devices and shared processors."""

import fcntl
import os
import re
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from orchestrator.domain.errors import InfraError

POLL_S = 0.05
NEWS_EVERY_S = 10.0


def lock_folder() -> Path:
    """Where every Tilefarm process of this user on this host finds the same lock files.

    Not XDG_RUNTIME_DIR: a login shell and a nightly job have different ones, or none.
    """
    folder = Path(tempfile.gettempdir()) / f"tilefarm-locks-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@contextmanager
def exclusive(
    name: str,
    *,
    timeout_s: float,
    folder: Path | None = None,
    on_wait: Callable[[], None] = lambda: None,
    sleep: Callable[[float], None] = time.sleep,
) -> Generator[None]:
    """Hold the named lock; ``on_wait`` is called now and then while another process holds it.

    Who waits holds the place behind the holder (``NAME.next``), so that a process that takes the lock again
    and again comes after those that wait.

    Raises:
        InfraError: not free within ``timeout_s``; names the holder.
    """
    safe = re.sub(r"[^A-Za-z0-9.-]", "_", name)
    base = (folder or lock_folder()) / safe
    wait = _Wait(name, time.monotonic() + timeout_s, on_wait, sleep)
    with (base.with_name(f"{safe}.lock")).open("a+") as file:
        with (base.with_name(f"{safe}.next")).open("a+") as place:
            wait.until(lambda: _try_lock(place.fileno()), file)
            wait.until(lambda: _try_lock(file.fileno()), file)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


@dataclass(slots=True)
class _Wait:
    """One wait for both steps: its deadline, and news now and then."""

    name: str
    deadline: float
    on_wait: Callable[[], None]
    sleep: Callable[[float], None]
    next_news: float = 0.0

    def until(self, done: Callable[[], bool], holder: IO[str]) -> None:
        while not done():
            now = time.monotonic()
            if now >= self.deadline:
                holder.seek(0)
                raise InfraError(
                    f"{self.name} is in use by process {holder.read().strip() or '?'}; wait or end it"
                )
            if now >= self.next_news:
                self.on_wait()
                self.next_news = now + NEWS_EVERY_S
            self.sleep(POLL_S)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
