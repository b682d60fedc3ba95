"""Redis may be away for a moment (a restart, a network that hiccups): what must reach it is tried again."""

import time
from collections.abc import Callable
from typing import TypeVar

import redis
import structlog
from celery.worker import state as celery_state

OUTAGE_S = 300.0
"""An outage up to so long costs a batch nothing."""
STOPPING_S = 5.0
"""… but to a worker that is told to stop: its Redis may have ended with its run, for good."""
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
        redis.RedisError: Redis was away for longer than ``OUTAGE_S``, or ``STOPPING_S``.
    """
    began = time.monotonic()
    while True:
        try:
            return call()
        except redis.RedisError as e:
            if time.monotonic() - began >= (STOPPING_S if told_to_stop() else OUTAGE_S):
                raise
            log.warning("redis is away", what=what, error=str(e))
        time.sleep(POLL_S)  # nobody tells us when it is back; the limit above bounds the wait


def told_to_stop() -> bool:
    """By SIGTERM or SIGINT: Celery ends its loop after the task in hand. An exit code of 0 means yes, too."""
    asked = (celery_state.should_stop, celery_state.should_terminate)
    return any(code is not None and code is not False for code in asked)
