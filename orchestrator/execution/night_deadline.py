"""A night's deadline: from then on its report is made of what is stored, and the rest is missing by name."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime

import structlog

from orchestrator.domain.errors import BrokerUnavailable

POLL_S = 30.0
"""The wall clock may be set meanwhile."""
AGAIN_S = 5.0
log = structlog.get_logger()


@contextmanager
def ends_at(
    closes_at: datetime,
    cancel: Callable[[], bool],
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Generator[None]:
    """While the block runs, a thread of its own ends the run once its deadline has come.

    Args:
        cancel: False while nothing of the run was sent; may raise BrokerUnavailable. Called until it is True.
    """
    over = threading.Event()

    def watch() -> None:
        while (left := (closes_at - now()).total_seconds()) > 0:
            if over.wait(min(left, POLL_S)):
                return
        log.warning("the night's deadline has come; its report is made of what there is")
        while not _done(cancel) and not over.wait(AGAIN_S):
            pass

    thread = threading.Thread(target=watch, name="deadline", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _done(cancel: Callable[[], bool]) -> bool:
    try:
        return cancel()
    except BrokerUnavailable as e:
        log.warning("tried again", error=str(e))
        return False
