"""Locks of this host that end with their process, however it ends (flock): devices and shared processors."""

import fcntl
import os
import re
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

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

    Raises:
        InfraError: not free within ``timeout_s``; names the holder.
    """
    safe = re.sub(r"[^A-Za-z0-9.-]", "_", name)
    path = (folder or lock_folder()) / f"{safe}.lock"
    deadline = time.monotonic() + timeout_s
    next_news = time.monotonic()
    with path.open("a+") as file:
        while not _try_lock(file.fileno()):
            now = time.monotonic()
            if now >= deadline:
                file.seek(0)
                raise InfraError(f"{name} is in use by process {file.read().strip() or '?'}; wait or end it")
            if now >= next_news:
                on_wait()
                next_news = now + NEWS_EVERY_S
            sleep(POLL_S)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
