"""``tilefarm agent``: the process that serves all devices of one host for a farm."""

from typing import Annotated

import typer

from orchestrator.cli.broker_url import broker_url
from orchestrator.cli.output import say
from orchestrator.domain.settings import Settings
from orchestrator.storage.redis_client import shown
from workers.agent.serve import serve


def agent(
    local: Annotated[
        bool, typer.Option("--local/--no-local", help="Serve this machine's own GPUs, too.")
    ] = True,
) -> None:
    """Serve every phone of this host for the farm at TILEFARM_BROKER, and get lost ones back.

    Phones may come and go; Ctrl-C ends each worker after its batch.

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm agent
    """
    settings = Settings()
    url = broker_url(settings, "an agent", "`tilefarm run` alone needs no agent")
    say(f"agent for {shown(url)}")
    serve(settings, local=local)
