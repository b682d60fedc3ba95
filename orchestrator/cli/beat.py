"""``tilefarm beat``: the process that reminds the orchestrator of its nights."""

import os
from contextlib import suppress

import redis

from orchestrator.cli.broker_url import broker_url
from orchestrator.cli.output import say
from orchestrator.domain.moment import utc_now
from orchestrator.domain.settings import Settings
from orchestrator.domain.submission import Service
from orchestrator.execution import beat as celery_beat
from orchestrator.storage.redis_client import connect, shown
from orchestrator.storage.submissions import Submissions
from workers.discovery import host_name

ANSWER_S = 10.0


def beat() -> None:
    """Have the orchestrator look every five minutes whether a night is due (TILEFARM_NIGHTS there).

    It decides nothing: a second beat, or one that was away, makes no second night and loses none.

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm beat
    """
    settings = Settings()
    url = broker_url(settings, "beat", "`tilefarm run` alone needs no beat")
    client = connect(url, answer_s=ANSWER_S)
    started = utc_now()
    service = Service("beat", host_name(), os.getpid(), started)
    services = Submissions(client)
    say(f"beat for {shown(url)}, every {settings.beat_s:.0f} s")
    scheduler = celery_beat.make_scheduler(url, settings.beat_s)
    try:
        celery_beat.beat(scheduler, lambda: services.serves(service))
    except KeyboardInterrupt:
        say("beat ends")
    finally:
        with suppress(redis.RedisError):  # it ends by itself
            services.serves_no_more(service)
        client.close()
