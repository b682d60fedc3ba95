"""``tilefarm flower``: Celery's own monitor on a farm's queues."""

from importlib.util import find_spec
from typing import Annotated

import typer
from celery import Celery
from kombu import Queue
from kombu.utils.url import parse_url

from orchestrator.cli.broker_url import broker_url
from orchestrator.cli.output import say
from orchestrator.domain.errors import NotInstalled
from orchestrator.domain.names import ORCHESTRATOR_QUEUE, celery_settings, worker_queues
from orchestrator.domain.settings import Settings
from orchestrator.execution.broker import Broker
from orchestrator.storage.redis_client import shown


def flower(
    address: Annotated[str, typer.Option("--address", help="Where it listens; it asks for no login.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", help="Not 5555: an adb server takes it for a phone.")] = 8555,
) -> None:
    """Show in a browser how long the farm's queues are (pip install flower); queues as of its start.

    Workers tell it nothing while they measure: `tilefarm queue` and `tilefarm status` know more.

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm flower
    """
    url = broker_url(Settings(), "Flower", "`tilefarm queue` needs nothing else")
    if find_spec("flower") is None:
        raise NotInstalled("flower is not installed: pip install -c constraints.txt flower")
    app = make_app(url)
    say(f"flower for {shown(url)} on http://{address}:{port}/broker")
    app.start(["flower", f"--address={address}", f"--port={port}", "--enable_events=False"])


def make_app(url: str) -> Celery:
    """A Celery application that knows the names of all queues that are served now.

    Raises:
        BrokerUnavailable: no Redis at ``url``.
    """
    broker = Broker(url)
    try:
        records = [r.record for r in broker.registrations().values()]
    finally:
        broker.close()
    names = {name for r in records for name in worker_queues(r.device_id, r.soc.name)} | {ORCHESTRATOR_QUEUE}
    app = Celery("tilefarm", broker=url)
    app.conf.update(celery_settings(), task_queues=[Queue(name) for name in sorted(names)])
    if tls := parse_url(url).get("ssl"):
        app.conf.broker_use_ssl = tls  # Flower's own connection reads it there, and not in the URL
    return app
