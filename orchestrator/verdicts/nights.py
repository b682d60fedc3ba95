"""A suite's nights out of the history, as the analysis wants them: series × nights, the last one tonight."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.speed.baseline import History as Past
from orchestrator.analysis.speed.baseline import Tonight
from orchestrator.analysis.speed.rows import Bools, Ints
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.history.database import StoredRun
from orchestrator.history.history import History
from orchestrator.history.query import NightTable, night_table
from orchestrator.triage.restarts import Restarts

NIGHTS = 90
"""That are looked at: the weekly scan's span; baselines take the last 14 accepted ones of these."""
UNJUDGED = -1
_MOVED = (SPEEDS.index(Speed.REGRESSED), SPEEDS.index(Speed.IMPROVED))


@dataclass(frozen=True, slots=True)
class Nights:
    """Of one suite."""

    table: NightTable
    accepted: Bools
    """(series, nights) that count for a baseline."""
    said: Ints
    """(series, nights) code of ``verdicts.SPEEDS``; −1: not judged then."""
    epoch: Ints
    """(series, nights) How often a person accepted a shift of its speed up to then."""
    numerics_epoch: Ints
    """(series, nights) The same of what it computes."""
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


def load(history: History, suite: str, until: str, restarts: Restarts | None = None) -> Nights:
    """
    Args:
        until: run id of tonight, which is in the history.
        restarts: accepted shifts.

    Raises:
        InfraError: a file of the history is missing or damaged.
    """
    restarts = restarts or Restarts()
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
    socs = history.socs({device for device, _ in table.series}) if restarts else {}
    epoch, numerics_epoch = _restarted(table, restarts, socs, accepted, said)
    return Nights(
        table=table,
        accepted=accepted,
        said=said,
        epoch=epoch,
        numerics_epoch=numerics_epoch,
        os_build=[[builds.get((run, device), "") for run in table.runs] for device, _ in table.series],
        sentinel=np.array([case in frozen.get(device, ()) for device, case in table.series], np.bool_),
    )


def _restarted(
    table: NightTable, restarts: Restarts, socs: Mapping[str, str], accepted: Bools, said: Ints
) -> tuple[Ints, Ints]:
    """Epochs of speed and of numerics. Nights that told an accepted shift are the first ones of the new
    baseline: ``accepted`` has them from now on."""
    runs = np.array(table.runs)
    epoch, numerics = (np.zeros(table.log_ns.shape, np.int64) for _ in range(2))
    if not restarts:
        return epoch, numerics
    for row, (device, case) in enumerate(table.series):
        soc = socs.get(device, "")
        for restart in restarts.of_series("speed", soc, device, case):
            later = runs >= restart.since
            epoch[row] += later
            told = later & (runs <= restart.seen_in) & np.isin(said[row], _MOVED)
            accepted[row] |= told & np.isfinite(table.log_ns[row])
        for restart in restarts.of_series("numerics", soc, device, case):
            numerics[row] += runs >= restart.since
    return epoch, numerics
