"""Celery beat: reminds the orchestrator to look whether a night is due. What is due is decided there, so that
a beat too many, too late or missing makes no night and takes none away.

The schedule is one interval, so there is nothing to keep in a file: beat starts anew each time.
"""

import time
from collections.abc import Callable
from datetime import timedelta

import redis
import structlog
from celery import Celery
from celery.beat import Scheduler

from orchestrator.domain.names import NIGHTS_TASK, ORCHESTRATOR_QUEUE, celery_settings

MAX_SLEEP_S = 5
"""Between two ticks, and so between two signs of life."""
SET_BACK_S = 1.0
"""A clock that goes back by less is a correction, and needs nothing."""
EXPIRES_S = 60.0
"""A message that lives shorter may be read by nobody, on a host that is busy for a moment."""
log = structlog.get_logger()


def make_scheduler(broker_url: str, every_s: float) -> Scheduler:
    """Sends ``NIGHTS_TASK`` each ``every_s`` seconds while somebody calls its ``tick``."""
    app = Celery("tilefarm", broker=broker_url)
    app.conf.update(celery_settings())
    app.conf.update(
        timezone="UTC",
        enable_utc=True,
        broker_connection_max_retries=None,
        beat_schedule={
            "nights": {
                "task": NIGHTS_TASK,
                "schedule": timedelta(seconds=every_s),
                # Who reads it later has looked at its own start, or gets the next one.
                "options": {"queue": ORCHESTRATOR_QUEUE, "expires": max(every_s, EXPIRES_S)},
            }
        },
    )
    return Scheduler(app, max_interval=MAX_SLEEP_S)


def beat(
    scheduler: Scheduler, alive: Callable[[], None], sleep: Callable[[float], None] = time.sleep
) -> None:
    """Until KeyboardInterrupt.

    Args:
        alive: called every few seconds, to say that beat lives; may raise redis.RedisError.
    """
    then = time.time()
    try:
        while True:
            now = time.time()
            if now < then - SET_BACK_S:
                log.warning("the clock was set back; the interval begins anew")
                count_anew(scheduler)
            then = now
            try:
                alive()
            except (redis.RedisError, OSError) as e:
                log.warning("Redis does not answer", error=str(e))
            sleep(max(0.0, scheduler.tick()))
    finally:
        scheduler.close()


def count_anew(scheduler: Scheduler) -> None:
    """After the clock was set back, Celery would send nothing until it is where it was."""
    for entry in scheduler.schedule.values():
        entry.last_run_at = entry.default_now()
    scheduler.populate_heap()
