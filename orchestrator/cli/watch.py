"""``tilefarm watch``: follow a run of the farm from anywhere, until it has ended."""

import json
import re
import time
from collections.abc import Collection
from contextlib import closing
from dataclasses import replace
from typing import Annotated

import typer

from orchestrator.cli.broker_url import broker_url
from orchestrator.cli.ending import EXIT_INTERRUPTED
from orchestrator.cli.live import LiveProgress
from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import news, print_json, result, say
from orchestrator.cli.status import ending_lines, next_step, unknown
from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.domain.names import soc_slug
from orchestrator.domain.run_state import ENDED, RunState
from orchestrator.domain.settings import Settings
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.domain.wire import to_json
from orchestrator.execution.board import Board
from orchestrator.execution.broker import Broker
from orchestrator.execution.dispatch import INFRA_ATTEMPTS
from orchestrator.storage.redis_client import shown
from reports.text import visible

LOOK_MS = 1000
EXIT_WITHOUT_RESULT = 3
_POOL = re.compile(r"pool\d+-")
"""Before the SoC in the id of a pool (``run_folder.pool_id``)."""


def watch(
    run_id: Annotated[str, typer.Argument(help="As `tilefarm run` or `tilefarm submit` printed it.")],
    as_json: JsonOption = False,
) -> None:
    """Follow a run until it has ended, and end with its exit code; Ctrl-C ends the watching only.

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm watch 20261201T010000Z-nightly-4c1f
    """
    url = broker_url(Settings(), "`tilefarm watch`", "A run without a farm shows itself in its own terminal")
    with closing(Board(url)) as board, closing(Broker(url)) as broker:
        try:
            state = _Following(board, broker, run_id).until_ended()
        except KeyboardInterrupt:
            say(f"{run_id} goes on; `tilefarm cancel {run_id}` would end it")
            raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        print_json(json.loads(to_json(state)))
    else:
        for line in ending_lines(state):
            result.print(line, markup=False, soft_wrap=True)
    raise typer.Exit(EXIT_WITHOUT_RESULT if state.exit_code is None else state.exit_code)


class _Following:
    """One run, over outages of its broker and of whoever carries it out."""

    def __init__(self, board: Board, broker: Broker, run_id: str) -> None:
        self._board = board
        self._broker = broker
        self._run_id = run_id
        self._after = "0"
        self._last_said = ""

    def until_ended(self) -> RunState:
        """
        Raises:
            UsageError: nobody knows the run.
        """
        while True:
            state = self._state()
            if state.phase in ENDED:
                return state
            if state.targets:
                self._show(state)
            else:
                self._say(self._next_step(state) or f"{visible(state.run_id)}: {state.phase}")
                time.sleep(LOOK_MS / 1000)  # Redis does not call us; for as long as the run waits

    def _show(self, state: RunState) -> None:
        """Live progress, until the run has ended."""
        rows: dict[str, tuple[str, int, float]] = {}
        for target in state.targets:  # pools of one SoC are served by one queue, and are one row
            row = target.device_id or soc_slug(target.soc)
            name, total, left_s = rows.get(row, (target.name, 0, 0.0))
            rows[row] = (name, total + target.total, left_s + target.left_s)
        with LiveProgress(news, rows, lambda: None) as live:
            while state.phase not in ENDED:
                self._hear(live, rows)
                live.tick()
                state = self._state()
                if step := self._next_step(state):
                    self._say(step)

    def _hear(self, live: LiveProgress, rows: Collection[str]) -> None:
        try:
            for entry_id, event in self._broker.events(self._run_id, self._after, LOOK_MS):
                self._after = entry_id
                if event is None:
                    continue
                row = event.target if event.target in rows else _POOL.sub("", event.target)
                if not isinstance(event, Trial):
                    live.progress(replace(event, planned_for=row))
                elif event.verdict is not Verdict.INFRA or event.attempt >= INFRA_ATTEMPTS:
                    live.trial(replace(event, planned_for=row))
        except BrokerUnavailable:
            self._away()

    def _state(self) -> RunState:
        while True:
            try:
                state = self._board.run(self._run_id)
            except BrokerUnavailable:
                self._away()
                continue
            if state is None:
                raise unknown(self._run_id)
            return state

    def _next_step(self, state: RunState) -> str:
        if state.live or state.phase in ENDED:
            return ""
        try:
            orchestrators = [service.host for service in self._board.orchestrators()]
            return next_step(state, orchestrators, self._board.submissions())
        except BrokerUnavailable:
            return ""

    def _away(self) -> None:
        self._say(f"broker {shown(self._board.url)} does not answer; waiting for it")
        time.sleep(LOOK_MS / 1000)  # Redis does not call us; until Ctrl-C

    def _say(self, text: str) -> None:
        if text != self._last_said:
            say(text)
        self._last_said = text
