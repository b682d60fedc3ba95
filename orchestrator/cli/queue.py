"""``tilefarm queue``: why each job of the farm still waits, and when it should begin and end."""

import json
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import groupby

from orchestrator.analysis.words import plural
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
    """Lines, not a table: a command that is folded into a column cannot be copied."""
    for (run_id, suite, user, lane), jobs in groupby(found, lambda p: (p.run_id, p.suite, p.user, p.lane)):
        nightly = ", nightly" if lane == "nightly" else ""
        _line(f"{visible(run_id)}  {visible(suite)} of {visible(user)}{nightly}")
        for job in jobs:
            _line(f"  {_job_text(job, now)}")
            for words in job.why:
                _line(f"    {visible(words)}")


def _job_text(job: Pending, now: datetime) -> str:
    """``Xiaomi 14 (xiaomi-8a1b2c3d): 6 cases, waits for 62 s, begins in 60 s, done in 90 s``."""
    facts = [plural(job.cases, "case")] if job.cases else []
    facts += [f"waits for {duration_text(seconds_since(job.since, now))}"] if job.since else []
    if job.since and job.begins_s is not None:
        facts.append("begins now" if job.begins_s < 1 else f"begins in {duration_text(job.begins_s)}")
    if job.ends_s is not None:
        facts.append(f"done in {duration_text(job.ends_s)}")
    elif job.cases:
        facts.append("nobody can tell when it is done")
    return (f"{visible(job.target)}: " if job.target else "") + ", ".join(facts)


def _line(text: str) -> None:
    result.print(text, markup=False, soft_wrap=True)
