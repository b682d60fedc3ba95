"""``tilefarm cancel``: end a run of the farm, from anywhere."""

from contextlib import closing
from typing import Annotated

import typer

from orchestrator.cli.broker_url import broker_url
from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import print_json, say
from orchestrator.cli.person import person
from orchestrator.cli.status import unknown
from orchestrator.domain.settings import Settings
from orchestrator.execution.board import Board


def cancel(
    run_id: Annotated[str, typer.Argument(help="As `tilefarm run` or `tilefarm submit` printed it.")],
    why: Annotated[str, typer.Option("--why", help="For those who waited for it.")] = "",
    as_json: JsonOption = False,
) -> None:
    """End a run: its devices are clean and free within seconds, what was measured stays.

    Whoever carries it out writes its report, with the rest as missing; `tilefarm run --resume` goes on. A
    submitted run that was not begun is struck off, without a report.

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm cancel 20261201T010000Z-nightly-4c1f
    """
    settings = Settings()
    url = broker_url(
        settings, "`tilefarm cancel`", "A run without a farm is ended by Ctrl-C in its own terminal"
    )
    reason = f"cancelled by {person()}" + (f": {why}" if why else "")
    with closing(Board(url)) as board:
        answer = board.cancel(run_id, reason)
        match answer:
            case "unknown":
                raise unknown(run_id)
            case "ended":
                state = board.run(run_id)
                reason = f"has ended already ({state.phase if state else 'and is forgotten'})"
            case "struck off":
                reason += "; it had not begun"
            case "ending":
                pass
    if as_json:
        print_json({"run_id": run_id, "why": reason, "was": answer})
    else:
        say(f"{run_id}: {reason}")
