"""``tilefarm cancel``: end a run of the farm, from anywhere."""

from typing import Annotated

import typer

from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import print_json, say
from orchestrator.cli.person import person
from orchestrator.domain.errors import UsageError
from orchestrator.domain.settings import Settings
from orchestrator.execution.broker import Broker


def cancel(
    run_id: Annotated[str, typer.Argument(help="As `tilefarm run` printed it.")],
    why: Annotated[str, typer.Option("--why", help="For those who waited for it.")] = "",
    as_json: JsonOption = False,
) -> None:
    """End a run: its devices are clean and free within seconds, what was measured stays.

    The run's own command writes its report, with the rest as missing; `tilefarm run --resume` goes on.

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm cancel 20261201T010000Z-nightly-4c1f
    """
    settings = Settings()
    if not settings.broker:
        raise UsageError(
            "TILEFARM_BROKER is not set: a run without a farm is ended by Ctrl-C in its own terminal"
        )
    reason = f"cancelled by {person()}" + (f": {why}" if why else "")
    if not Broker(settings.broker).cancel(run_id, reason):
        raise UsageError(f"{run_id}: no batch of that run was ever sent by this broker. Look at the id again")
    if as_json:
        print_json({"run_id": run_id, "why": reason})
    else:
        say(f"{run_id}: {reason}")
