"""``tilefarm worker``: the process that serves one device of a farm."""

from typing import Annotated

import typer

from orchestrator.cli.output import print_json, say
from orchestrator.domain.errors import UsageError
from orchestrator.domain.settings import Settings
from orchestrator.storage.redis_client import connect, shown
from workers.discovery import find
from workers.serve import serve


def worker(
    device: Annotated[
        str,
        typer.Option(
            "--device",
            help="Serial as adb lists it, 'local:NAME', or 'local' where this machine has one GPU.",
        ),
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the device and the broker as JSON before serving.")
    ] = False,
) -> None:
    """Serve one device for the farm at TILEFARM_BROKER until told to stop (Ctrl-C ends after the batch).

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm worker --device local:lavapipe
    """
    settings = Settings()
    if not settings.broker:
        raise UsageError(
            "TILEFARM_BROKER is not set: a worker needs the farm's Redis, e.g. redis://localhost:6379/0. "
            "`tilefarm run` alone needs no worker"
        )
    connect(settings.broker).close()  # before the device is probed, which takes longer
    found = find(device, settings)
    if as_json:
        print_json({"transport": found.transport, "serial": found.serial, "broker": shown(settings.broker)})
    else:
        say(f"serving {found.serial} for {shown(settings.broker)}")
    serve(found, settings.broker, settings)
