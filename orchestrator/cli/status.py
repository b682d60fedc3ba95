"""``tilefarm status``: how far runs are, who carries them out, and what helps those that nobody does."""

import json
from collections.abc import Collection, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import duration_text, print_json, result, say
from orchestrator.cli.status_local import local_runs
from orchestrator.domain.errors import UsageError
from orchestrator.domain.moment import parse_time
from orchestrator.domain.run_state import ENDED, RunState
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from orchestrator.execution.board import Board
from reports.text import visible

SHOWN_ENDED = 20


def status(
    run_id: Annotated[str | None, typer.Argument(help="One run, with its devices. Default: all.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help=f"Also those that ended before the last {SHOWN_ENDED}.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the runs of the farm at TILEFARM_BROKER, from any machine; without a farm those in OUT.

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm status
    """
    settings = Settings()
    if not settings.broker:
        local_runs(settings.out, run_id, None if everything else SHOWN_ENDED, as_json=as_json)
        return
    with closing(Board(settings.broker)) as board:
        orchestrators = [s.host for s in board.orchestrators()]
        submitted = board.submissions().keys()
        if run_id is None:
            runs = board.runs()
        elif (found := board.run(run_id)) is not None:
            runs = [found]
        else:
            raise unknown(run_id)
    shown = runs if everything or run_id else _recent(runs)
    if as_json:
        documents = [
            json.loads(to_json(state)) | {"next": next_step(state, orchestrators, submitted)}
            for state in shown
        ]
        print_json({"runs": documents, "orchestrators": orchestrators})
        return
    result.print(_table(shown))
    for state in shown:
        if step := next_step(state, orchestrators, submitted):
            say(f"{visible(state.run_id)}: {step}")
    if run_id:
        _print_one(shown[0])


def unknown(run_id: str) -> UsageError:
    """For a run that is neither in Redis nor submitted."""
    return UsageError(
        f"{run_id}: nobody at this broker knows that run, or it ended more than a week ago. "
        "`tilefarm status --all` lists what is known"
    )


def _recent(runs: Sequence[RunState]) -> list[RunState]:
    """All that have not ended, and the last of those that have."""
    ended = [s.run_id for s in sorted(runs, key=lambda s: s.updated_at) if s.phase in ENDED]
    old = set(ended[:-SHOWN_ENDED])
    return [state for state in runs if state.run_id not in old]


def next_step(state: RunState, orchestrators: Collection[str], submitted: Collection[str]) -> str:
    """What keeps a run from going on, and what helps; empty: nothing does.

    Args:
        submitted: runs that an orchestrator has to carry out.
    """
    if state.phase == "submitted":
        waits = "waits for its turn with the orchestrator"
        return "" if orchestrators else f"{waits}, and none lives: start `tilefarm orchestrator`"
    if state.phase in ENDED or state.live:
        return ""
    if state.run_id in submitted:
        by = (
            "its orchestrator goes on by itself"
            if orchestrators
            else "start `tilefarm orchestrator` to go on"
        )
        return f"nobody carries it out now: {by}" + (f" ({visible(state.why)})" if state.why else "")
    restart = f"`tilefarm run --resume {visible(state.run_id)}` there goes on"
    return f"nobody carries it out now; it was on {visible(state.host)}, and {restart}"


def _table(runs: Sequence[RunState]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("run", "phase", "user", "lane", "done", "devices", "left", "since", ""):
        table.add_column(column, justify="right" if column in ("done", "devices", "left") else "left")
    now = datetime.now(UTC)
    for state in runs:
        total = sum(t.total for t in state.targets)
        left_s = max((t.left_s for t in state.targets), default=0.0)
        words = (
            state.run_id,
            phase_text(state),
            state.user,
            state.lane,
            f"{sum(t.done for t in state.targets)}/{total}" if total else "",
            str(len(state.targets) or ""),
            duration_text(left_s) if left_s and state.phase not in ENDED else "",
            _ago(state.started_at, now),
            state.verdict or state.why,
        )
        table.add_row(*(Text(visible(word)) for word in words))
    return table


def phase_text(state: RunState) -> str:
    """A run that nobody carries out is not running, whatever was last heard of it."""
    if state.phase in ENDED or state.phase == "submitted" or state.live:
        return state.phase
    return "cut off"


def _ago(moment: str, now: datetime) -> str:
    try:
        return duration_text(max(0.0, (now - parse_time(moment)).total_seconds())) + " ago"
    except ValueError:  # from elsewhere
        return moment


def _print_one(state: RunState) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("device", "done", "lost", "left", "waits since", ""):
        table.add_column(column, justify="right" if column in ("done", "lost", "left") else "left")
    for target in state.targets:
        words = (
            f"{target.name} ({target.soc})" if target.device_id else target.name,
            f"{target.done}/{target.total}",
            str(target.lost or ""),
            duration_text(target.left_s) if target.left_s else "",
            target.waiting_since,
            target.why,
        )
        table.add_row(*(Text(visible(word)) for word in words))
    if state.targets:
        result.print()
        result.print(table)
    for line in ending_lines(state):
        result.print(line, markup=False, soft_wrap=True)


def ending_lines(state: RunState) -> list[str]:
    """What a run that has ended says of itself, for people."""
    lines = [visible(state.verdict)] if state.verdict else []
    if state.why:
        lines.append(f"{state.phase}: {visible(state.why)}")
    if state.report:
        lines.append(f"report: {visible(state.report)} on {visible(state.host)}")
    return lines
