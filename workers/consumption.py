"""Does this worker take what is in its queues? A consumer may hang while all else of its process lives.

Seen with Celery over a Redis that was cut off and came back (https://github.com/celery/celery/issues/8030):
the heartbeat goes on, nothing is consumed, a night is silently empty. Who started the worker starts another.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import redis
import structlog
from celery import signals

from orchestrator.domain.names import CELERY_PREFIX
from orchestrator.storage.degraded import note_degraded
from orchestrator.storage.redis_client import RedisClient

POLL_S = 10.0
STALL_S = 120.0
"""An idle worker takes a batch within a second, and Celery is back within half a minute of its Redis."""
EXIT_STALLED = 5
WHY = f"its worker lived and took none of the work queued for {STALL_S:g} s; it ended itself for another one"
log = structlog.get_logger()


def end_stalled(client: RedisClient, device_id: str) -> None:
    """Tell the runs that wait for this device, and end: no batch is in hand, and what hangs would keep an
    orderly end waiting."""
    try:
        with suppress(redis.RedisError):
            note_degraded(client, device_id, WHY)
    finally:  # whatever went wrong
        os._exit(EXIT_STALLED)


class Consumption:
    """A thread that ends the process when work waits in its queues for ``STALL_S`` and none is begun."""

    def __init__(
        self,
        client: RedisClient,
        queues: Sequence[str],
        *,
        leave: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._keys = [CELERY_PREFIX + queue for queue in queues]
        self._clock = clock
        self._leave = leave
        self._busy = 0
        self._idle_since = clock()
        self._waiting_since: float | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="consumption", daemon=True)

    def start(self) -> None:
        signals.task_prerun.connect(self._begun)
        signals.task_postrun.connect(self._ended)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        signals.task_prerun.disconnect(self._begun)
        signals.task_postrun.disconnect(self._ended)

    def look(self) -> None:
        """Once; leaves if nothing has been begun for too long though there is work."""
        try:
            waiting = sum(self._client.llen(key) for key in self._keys)
        except redis.RedisError:
            waiting = 0  # it is away, and so is the work
        now = self._clock()
        if self._busy or not waiting:
            self._waiting_since = None
            return
        if self._waiting_since is None:
            self._waiting_since = now
        if now - max(self._waiting_since, self._idle_since) >= STALL_S:
            log.error("work waits and none is begun: this worker ends, for another one", batches=waiting)
            self._leave()

    def _watch(self) -> None:
        while not self._stop.wait(POLL_S):
            self.look()

    def _begun(self, **_: object) -> None:
        self._busy += 1

    def _ended(self, **_: object) -> None:
        self._busy -= 1
        self._idle_since = self._clock()
