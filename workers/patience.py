"""Redis may be away for a moment (a restart, a network that hiccups): what must reach it is tried again."""

import time
from collections.abc import Callable
from typing import TypeVar

import redis
import structlog

OUTAGE_S = 300.0
"""An outage up to so long costs a batch nothing."""
POLL_S = 0.5
QUIET_S = 10.0
"""What may be left out (news, polls) is left out for so long after an error: a link that hangs takes seconds
for each try, and the runner's output is not read meanwhile."""
log = structlog.get_logger()
T = TypeVar("T")


def patiently(what: str, call: Callable[[], T]) -> T:
    """The answer to a call that may be made twice: an answer that was lost on its way is asked for again.

    Args:
        what: for the log.

    Raises:
        redis.RedisError: Redis was away for longer than ``OUTAGE_S``.
    """
    deadline = time.monotonic() + OUTAGE_S
    while True:
        try:
            return call()
        except redis.RedisError as e:
            if time.monotonic() >= deadline:
                raise
            log.warning("redis is away", what=what, error=str(e))
        time.sleep(POLL_S)  # nobody tells us when it is back; the deadline above bounds the wait
