"""``tilefarm agent``: the process that serves all devices of one host for a farm."""

from typing import Annotated

import typer

from orchestrator.cli.output import say
from orchestrator.domain.errors import UsageError
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
    if not settings.broker:
        raise UsageError(
            "TILEFARM_BROKER is not set: an agent needs the farm's Redis, e.g. redis://localhost:6379/0. "
            "`tilefarm run` alone needs no agent"
        )
    say(f"agent for {shown(settings.broker)}")
    serve(settings, local=local)
