"""Nights that are too old to be looked at, and that something is still held against: a shift that nobody
accepted must not end by its baseline's age."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.speed.rows import Bools, Ints, newest
from orchestrator.history import trial_files
from orchestrator.history.database import StoredRun
from orchestrator.history.history import History
from orchestrator.history.said import said_before
from orchestrator.triage.restarts import Restarts
from orchestrator.verdicts.restarted import MOVED, epochs


@dataclass(frozen=True, slots=True)
class Lacking:
    """What moved since its last accepted night, and has fewer accepted nights than a baseline holds."""

    series: list[tuple[str, str]]
    """Device and case; of a phone as a whole the case is ``EVERYTHING``."""
    nights: Ints
    """(series,) Accepted ones that it lacks."""
    epoch: Ints
    """(series,) Tonight's."""
    none: Bools
    """(series,) Not one accepted night is looked at: neither is the one in which it moved."""


def outlived(
    history: History,
    before: Callable[[str], Sequence[StoredRun]],
    first: str,
    judged_since: str,
    lacking: Lacking,
    restarts: Restarts,
    socs: Mapping[str, str],
) -> list[StoredRun]:
    """Runs with the nights that are lacking, the oldest first: the newest such nights of each series, and the
    night in which it moved, which says since when, and why. A series that was not there at all in as many
    nights as ``before`` gives has no older ones.

    Args:
        before: run id → some nights before it, oldest first; empty: there are none.
        first: run of the oldest night that is looked at anyway.
        judged_since: the first run that was judged; older nights count as they are.
    """
    missing, moving = lacking.nights.copy(), lacking.none.copy()
    found: dict[str, StoredRun] = {}
    first_moved: dict[int, StoredRun] = {}
    while (missing > 0).any() and (runs := before(first)):
        first = min(run.run_id for run in runs)
        counts = np.array([run.run_id < judged_since and not run.verdicts for run in runs], np.bool_)
        fits, moved, there = _said(history, runs, lacking, restarts, socs)
        fits |= counts & (missing > 0)[:, None]
        used = newest(fits, missing)
        wanted = np.count_nonzero(used, axis=0) > 0
        found |= {run.run_id: run for run, taken in zip(runs, wanted.tolist(), strict=True) if taken}
        # Told since the last accepted night: of these the first.
        later: Bools = moved & (np.cumsum(fits[:, ::-1], axis=1)[:, ::-1] == 0)
        for series in np.flatnonzero(moving & later.any(axis=1)).tolist():
            first_moved[series] = runs[int(later[series].argmax())]
        moving &= ~fits.any(axis=1)
        missing -= np.count_nonzero(used, axis=1)
        missing[~there & ~counts.any()] = 0
    found |= {run.run_id: run for run in first_moved.values()}
    return [found[run_id] for run_id in sorted(found)]


def _said(
    history: History,
    runs: Sequence[StoredRun],
    lacking: Lacking,
    restarts: Restarts,
    socs: Mapping[str, str],
) -> tuple[Bools, Bools, Bools]:
    """(series, nights) that are accepted in tonight's epoch, and that moved in it; (series,) that were there
    at all."""
    ids = [run.run_id for run in runs]
    said = np.full((len(lacking.series), len(runs)), -1, np.int64)
    accepted = np.zeros(said.shape, np.bool_)
    judged = {
        run.run_id: history.verdict_path(run)
        for run in runs
        if run.verdicts and not trial_files.check(history.verdict_path(run), run.verdicts_sha256)
    }
    known = said_before(judged, ids, lacking.series)
    said[known.series, known.night] = known.speed
    accepted[known.series, known.night] = known.accepted
    own = epochs(ids, lacking.series, said, restarts, socs)
    ours = own.speed == lacking.epoch[:, None]
    moved = np.isin(said, MOVED) & ~own.told
    return (accepted | own.told) & ours, moved & ours, np.count_nonzero(said >= 0, axis=1) > 0
