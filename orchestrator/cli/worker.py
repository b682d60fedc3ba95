"""``tilefarm worker``: the process that serves one device of a farm."""

from typing import Annotated

import typer

from orchestrator.cli.broker_url import broker_url
from orchestrator.cli.output import print_json, say
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
    url = broker_url(settings, "a worker", "`tilefarm run` alone needs no worker")
    connect(url).close()  # before the device is probed, which takes longer
    found = find(device, settings)
    if as_json:
        print_json({"transport": found.transport, "serial": found.serial, "broker": shown(url)})
    else:
        say(f"serving {found.serial} for {shown(url)}")
    serve(found, url, settings)
