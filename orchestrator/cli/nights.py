"""``tilefarm nights``: which nights there were, and what became of each."""

import json
from typing import Annotated

import redis
import typer
from rich.table import Table
from rich.text import Text

from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import print_json, result, say
from orchestrator.domain.errors import BrokerUnavailable, UsageError
from orchestrator.domain.night import NightRecord
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from orchestrator.execution.night_folder import NightFolder
from orchestrator.execution.roll_call import Rolls
from orchestrator.storage.night_claims import NightClaims
from orchestrator.storage.redis_client import connect, shown
from reports.text import visible

EXIT_WITHOUT_RESULTS = 3
STATES = {"finished": "ran", "started": "running", "failed": "FAILED", "missed": "MISSED"}
ANSWER_S = 10.0


def nights(
    last: Annotated[int, typer.Option("--last", min=1, help="So many nights, newest first.")] = 30,
    forget: Annotated[
        str | None,
        typer.Option(
            "--forget", metavar="DEVICE", help="Expect this phone (id or serial) no more in any night."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the nights of TILEFARM_NIGHTS: ran, running, failed, missed and why.

    Exit code: 3 when the newest night of any suite brought no results, else 0.

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm nights --last 7
    """
    settings = Settings()
    if forget is not None:
        _forget(settings, forget)
        return
    found = sorted(known_nights(settings).values(), key=lambda r: (r.due, r.suite), reverse=True)
    bad = without_results(found)
    if as_json:
        print_json({"nights": [json.loads(to_json(r)) for r in found[:last]], "without_results": bad})
    elif found:
        result.print(_table(found[:last]))
    else:
        say("no nights yet; TILEFARM_NIGHTS of the orchestrator says when there is one")
    raise typer.Exit(EXIT_WITHOUT_RESULTS if bad else 0)


def known_nights(settings: Settings) -> dict[str, NightRecord]:
    """By id: of this OUT, and of the farm's Redis."""
    found = NightFolder(settings.out).all()
    if settings.broker:
        try:
            client = connect(settings.broker, answer_s=ANSWER_S)
            try:
                # Of a night of this OUT the file is never older than what Redis has.
                found = NightClaims(client).all() | found
            finally:
                client.close()
        except (BrokerUnavailable, redis.RedisError) as e:
            say(f"only nights in {settings.out / 'nights'}: {shown(settings.broker)}: {e}")
    return found


def without_results(newest_first: list[NightRecord]) -> list[str]:
    """Ids of those that are the newest ended night of their suite and brought no results."""
    newest: dict[str, NightRecord] = {}
    for record in newest_first:
        if record.state != "started":
            newest.setdefault(record.suite, record)
    return [r.night for r in newest.values() if not r.has_results]


def _forget(settings: Settings, name: str) -> None:
    forgotten = Rolls(settings.out).forget(name)
    if not forgotten:
        raise UsageError(
            f"--forget {name}: no night of {settings.out} expects a phone with this id or serial"
        )
    say(f"no night expects {', '.join(forgotten)} any more; one that takes part again is expected again")


def _table(records: list[NightRecord]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("Night (UTC)", "", "Run", "Verdict"):
        table.add_column(Text(name), overflow="fold")
    for r in records:
        degraded = f"degraded: {'; '.join(r.degraded)}" if r.degraded else ""
        words = r.verdict or r.why or ("" if r.state != "started" else f"since {r.started_at} on {r.host}")
        words = " ".join(filter(None, (words, degraded)))
        style = "red" if r.state in ("failed", "missed") else "yellow" if degraded else ""
        table.add_row(
            *(Text(visible(text), style=style) for text in (r.night, STATES[r.state], r.run_id, words))
        )
    return table
