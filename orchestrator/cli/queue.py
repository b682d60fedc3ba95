"""``tilefarm queue``: why each job of the farm still waits, and when it should begin and end."""

import json
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime

from rich.table import Table

from orchestrator.cli.broker_url import broker_url
from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import duration_text, print_json, result, say
from orchestrator.domain.run_state import ENDED
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from orchestrator.execution.board import Board
from orchestrator.execution.broker import Broker
from orchestrator.execution.matches import Seen, seconds_since
from orchestrator.execution.waiting import Pending, pending
from reports.text import visible


def queue(as_json: JsonOption = False) -> None:
    """Explain each pending job of the farm: what it waits for, and when it should begin and end.

    A job is what a run has left on one device, or on any phone of a SoC. Estimates assume that nothing new
    comes and that phones which cannot work now stay away.

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm queue
    """
    url = broker_url(Settings(), "`tilefarm queue`", "A run without a farm has its phones to itself")
    now = datetime.now(UTC)
    found = pending(_look(url), now)
    if as_json:
        print_json({"at": now.isoformat(timespec="seconds"), "jobs": [json.loads(to_json(p)) for p in found]})
    elif found:
        _print(found, now)
    else:
        say("nothing waits in this farm")


def _look(url: str) -> Seen:
    with closing(Board(url)) as board:
        runs = [run for run in board.runs() if run.phase not in ENDED]
        submitted, orchestrators = board.submissions().keys(), board.orchestrators()
    devices = {device_id for run in runs for target in run.targets for device_id in target.devices}
    with closing(Broker(url)) as broker:
        return Seen(
            runs=runs,
            registrations=broker.registrations(),
            holds=broker.holds(),
            agents=broker.agents(),
            leased=broker.leased(sorted(devices)),
            submitted=submitted,
            orchestrators=orchestrators,
        )


def _print(found: Sequence[Pending], now: datetime) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("run", "by", "on", "cases", "waits", "begins", "done", "why"):
        table.add_column(column, overflow="fold", no_wrap=column in ("cases", "waits", "begins", "done"))
    for job in found:
        lane = " (nightly)" if job.lane == "nightly" else ""
        table.add_row(
            visible(job.run_id),
            visible(job.user) + lane,
            visible(job.target),
            str(job.cases or ""),
            duration_text(seconds_since(job.since, now)) if job.since else "",
            _moment(job.begins_s),
            _moment(job.ends_s),
            "; ".join(visible(words) for words in job.why),
        )
    result.print(table, markup=False)


def _moment(seconds: float | None) -> str:
    """From now, roughly."""
    if seconds is None:
        return "?"
    return "now" if seconds < 1 else f"in {duration_text(seconds)}"
