"""A suite's nights out of the history, as the analysis wants them: series × nights, the last one tonight."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.speed.baseline import History as Past
from orchestrator.analysis.speed.baseline import Tonight
from orchestrator.analysis.speed.rows import Bools, Ints
from orchestrator.history.database import StoredRun
from orchestrator.history.history import History
from orchestrator.history.query import NightTable, night_table

NIGHTS = 90
"""That are looked at: the weekly scan's span; baselines take the last 14 accepted ones of these."""
UNJUDGED = -1

Restarts = Callable[[str, str, str], int]
"""(device, case, run) → how often a person accepted a shift of the series up to that run."""


@dataclass(frozen=True, slots=True)
class Nights:
    """Of one suite."""

    table: NightTable
    accepted: Bools
    """(series, nights) that count for a baseline."""
    said: Ints
    """(series, nights) code of ``verdicts.SPEEDS``; −1: not judged then."""
    epoch: Ints
    """(series, nights)"""
    os_build: list[list[str]]
    """[series][night]; empty where the device was not there."""
    sentinel: Bools
    """(series,)"""

    @property
    def past(self) -> Past:
        table = self.table
        return Past(
            table.log_ns[:, :-1],
            self.accepted[:, :-1],
            table.basis[:, :-1],
            table.clock_hz[:, :-1],
            self.epoch[:, :-1],
        )

    @property
    def tonight(self) -> Tonight:
        table = self.table
        return Tonight(table.log_ns[:, -1], table.basis[:, -1], table.clock_hz[:, -1], self.epoch[:, -1])

    @property
    def measured(self) -> Bools:
        """(series,) tonight"""
        return self.table.measured[:, -1] > 0


def chosen(runs: Sequence[StoredRun], until: str) -> list[StoredRun]:
    """Whole runs of one suite up to run ``until``, one a night: its own run, else the day's last one."""
    by_night: dict[str, StoredRun] = {}
    for run in runs:
        if run.run_id > until or not (run.whole_suite or run.run_id == until):
            continue
        key = run.night or run.started_at[:10]
        there = by_night.get(key)
        if there is None or run.run_id == until or not (there.night and there.run_id != until):
            by_night[key] = run
    return sorted(by_night.values(), key=lambda r: (r.started_at, r.run_id))[-NIGHTS:]


def load(history: History, suite: str, until: str, restarts: Restarts) -> Nights:
    """
    Args:
        until: run id of tonight, which is in the history.

    Raises:
        InfraError: a file of the history is missing or damaged.
    """
    runs = chosen(history.runs(suite), until)
    table = night_table({run.run_id: history.path(run) for run in runs})
    shape = table.log_ns.shape
    accepted = np.isfinite(table.log_ns)
    said = np.full(shape, UNJUDGED, np.int64)
    for night, run in enumerate(runs[:-1]):
        known = history.verdicts(run)
        if not known:
            continue  # before nights were judged: all of it counts
        for row, series in enumerate(table.series):
            said[row, night], accepted[row, night] = known.get(series, (UNJUDGED, False))
    builds = history.environments(table.runs)
    frozen = history.sentinels()
    return Nights(
        table=table,
        accepted=accepted,
        said=said,
        epoch=np.array(
            [[restarts(device, case, run) for run in table.runs] for device, case in table.series], np.int64
        ).reshape(shape),
        os_build=[[builds.get((run, device), "") for run in table.runs] for device, _ in table.series],
        sentinel=np.array([case in frozen.get(device, ()) for device, case in table.series], np.bool_),
    )
