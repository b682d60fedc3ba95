"""Pinned runs older than the nights that are looked at: errors are held against them all the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.speed.rows import Ints
from orchestrator.history.database import StoredRun
from orchestrator.history.history import History
from orchestrator.history.query import NightTable, night_table
from orchestrator.triage.restarts import Restarts
from orchestrator.verdicts.restarted import epochs


@dataclass(frozen=True, slots=True)
class Pins:
    table: NightTable
    row: Mapping[tuple[str, str], int]
    """Device and case → index of the table."""
    numerics_epoch: Ints
    """(series, nights)"""
    os_build: Mapping[tuple[str, str], str]
    """By run and device."""


def read_pins(
    history: History, runs: Sequence[StoredRun], restarts: Restarts, socs: Mapping[str, str]
) -> Pins | None:
    """
    Args:
        runs: pinned, and whole on disk; none: None.
        socs: device → SoC.

    Raises:
        InfraError: a file cannot be read.
    """
    if not runs:
        return None
    table = night_table({run.run_id: history.path(run) for run in runs})
    nothing_said = np.full(table.log_ns.shape, -1, np.int64)
    return Pins(
        table=table,
        row={series: number for number, series in enumerate(table.series)},
        numerics_epoch=epochs(table.runs, table.series, nothing_said, restarts, socs).numerics,
        os_build=history.environments(table.runs),
    )
