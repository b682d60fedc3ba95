"""A suite's nights out of the history, as the analysis wants them: series × nights, the last one tonight."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from orchestrator.analysis.speed.baseline import History as Past
from orchestrator.analysis.speed.baseline import Tonight
from orchestrator.analysis.speed.rows import Bools, Ints, indices
from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.analysis.words import plural
from orchestrator.domain.finding import EVERYTHING
from orchestrator.history.database import StoredRun
from orchestrator.history.history import History
from orchestrator.history.known import known_cases
from orchestrator.history.query import NightTable, night_table
from orchestrator.history.said import said_before
from orchestrator.triage.restarts import Restarts
from orchestrator.verdicts.outlived import Lacking, outlived
from orchestrator.verdicts.pins import Pins, read_pins
from orchestrator.verdicts.restarted import MOVED, epochs

NIGHTS = 90
"""That are looked at: the weekly scan's span; baselines take the last 14 accepted ones of these. What moved
since its baseline, which nobody accepted, keeps that one, however old (``outlived``)."""
UNJUDGED = -1
MAX_UNJUDGED = 3
"""Nights that were never judged, which are told one by one."""


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
    compilers: list[str]
    """(nights,) What made SPIR-V of the run's shaders; empty: nothing, or nobody knows."""
    vulkan: Bools
    """(series,) that run what it made."""
    dates: list[str]
    """(nights,) ISO date of each night's plan, else of its run's start."""
    whole_said: Mapping[str, Ints]
    """Device → (nights,) what was said of the phone as a whole, as ``said``."""
    whole_epoch: Mapping[str, Ints]
    """Device → (nights,) how often a person accepted a shift of the phone as a whole."""
    counting: Bools
    """(nights,) Tonight, and those that were judged, or that are older than the first one that was."""
    pins: Pins | None
    """Pinned runs of the suite that are none of these nights; None: there are none."""
    left_out: list[str]
    """Sentences about nights that do not count: their files are damaged, or they were never judged."""

    def whole_accepted(self, device_id: str) -> Bools:
        """(nights,) that the phone as a whole is compared with."""
        said, epoch = self.whole_said[device_id], self.whole_epoch[device_id]
        return self.counting & ~np.isin(said, MOVED) & (epoch == epoch[-1])

    def other_compiler(self, series: int, before: int, night: int) -> tuple[str, str] | None:
        """Both compilers, where another one made the series' code in ``night`` than in ``before``."""
        old, new = self.compilers[before], self.compilers[night]
        return (old, new) if self.vulkan[series] and old and new and old != new else None

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


def _date(run: StoredRun) -> str:
    """Of its night, whose id begins with it (``2026-12-01-nightly``), else of its start."""
    return (run.night or run.started_at)[:10]


def chosen(runs: Sequence[StoredRun], until: str) -> list[StoredRun]:
    """Whole runs of one suite up to run ``until``, one a UTC day: that of its night, else the day's last one.
    A run of a selection or of named devices (``StoredRun.whole_suite``) is looked at as ``until`` only."""
    by_night: dict[str, StoredRun] = {}
    for run in runs:
        if run.run_id > until or not (run.whole_suite or run.run_id == until):
            continue
        key = _date(run)
        there = by_night.get(key)
        if there is None or run.run_id == until or not (there.night and there.run_id != until):
            by_night[key] = run
    return sorted(by_night.values(), key=lambda r: (r.started_at, r.run_id))[-NIGHTS:]


def sound(history: History, runs: Sequence[StoredRun], until: str) -> tuple[list[StoredRun], list[str]]:
    """Runs whose files are as they were written, and a sentence about each other one: an old file that is
    damaged costs its own night. Tonight's stays: reading it says what is wrong."""
    why = {run.run_id: history.damage(run) for run in runs if run.run_id != until}
    told = [
        f"night {_date(run)} is left out: {why[run.run_id]}. `tilefarm db check` says what repairs it"
        for run in runs
        if why.get(run.run_id)
    ]
    return [run for run in runs if not why.get(run.run_id)], told


def judged_since(runs: Sequence[StoredRun]) -> str:
    """The first run that was judged; empty: none was."""
    return min((run.run_id for run in runs if run.verdicts and run.whole_suite), default="")


def counting(runs: Sequence[StoredRun], nights: Sequence[StoredRun]) -> tuple[Bools, list[str]]:
    """(nights,) Whether each one may be in a baseline, the last one being tonight; and sentences about those
    that may not. Nobody knows what a night shows that was not judged: seven slow ones would be a baseline.
    Before the first one that was judged there was nothing to judge by: all of them count.

    Args:
        runs: all that there are of the suite.
    """
    first = judged_since(runs)
    found = [bool(r.verdicts) or not first or r.run_id < first or r is nights[-1] for r in nights]
    out = [run for run, counts in zip(nights, found, strict=True) if not counts]
    told = [
        f"night {_date(run)} was never judged and does not count: `tilefarm report {run.run_id}`"
        for run in out[:MAX_UNJUDGED]
    ]
    if more := out[MAX_UNJUDGED:]:
        told.append(
            f"{plural(len(more), 'more night')} up to {_date(more[-1])} likewise: judge the oldest first"
        )
    return np.array(found, np.bool_), told


def load(
    history: History,
    suite: str,
    until: str,
    restarts: Restarts | None = None,
    asked: Callable[[str, str, int], bool] | None = None,
) -> Nights:
    """
    Args:
        until: run id of tonight, which is in the history.
        restarts: accepted shifts.
        asked: of device, case, and the nights since the device's last trial, whether tonight was to measure
            it; None: all that there are.

    Raises:
        InfraError: tonight's file is missing or damaged.
    """
    restarts = restarts or Restarts()
    every = history.runs(suite)
    runs, damaged = sound(history, chosen(every, until), until)
    found = _nights(history, every, runs, restarts, asked)
    if older := _older(history, every, found, restarts):
        kept, gone = sound(history, older, until)
        there = set(found.table.series)
        found = _nights(history, every, kept + runs, restarts, lambda d, c, _: (d, c) in there)
        damaged = gone + damaged
    names = set(history.baselines.pinned().values()) - set(found.table.runs)
    pinned, gone = sound(history, [run for run in every if run.run_id in names and run.run_id < until], until)
    socs = history.socs({device for device, _ in found.table.series}) if restarts else {}
    pins = read_pins(history, pinned, restarts, socs)
    return replace(found, pins=pins, left_out=damaged + gone + found.left_out)


def _nights(
    history: History,
    every: Sequence[StoredRun],
    runs: Sequence[StoredRun],
    restarts: Restarts,
    asked: Callable[[str, str, int], bool] | None,
) -> Nights:
    """
    Args:
        every: all runs of the suite.
        runs: of the nights, tonight last.
    """
    counts, unjudged = counting(every, runs)
    table = night_table({run.run_id: history.path(run) for run in runs})
    if asked is not None:
        away = _away(table)
        table = table.of([n for n, (d, case) in enumerate(table.series) if asked(d, case, away[d])])
    accepted = np.isfinite(table.log_ns)
    said = np.full(table.log_ns.shape, UNJUDGED, np.int64)
    devices = list(dict.fromkeys(device for device, _ in table.series))
    whole = {device: np.full(len(runs), UNJUDGED, np.int64) for device in devices}
    judged = {run.run_id: history.verdict_path(run) for run in runs[:-1] if run.verdicts}
    known = said_before(judged, table.runs, table.series)
    # In a night that was judged those count that it says so of.
    accepted[:, ~counts | [run.run_id in judged for run in runs]] = False
    at = known.series, known.night
    said[at], accepted[at] = known.speed, known.accepted
    for device, night, speed in known.whole:
        if device in whole:
            whole[device][night] = speed
    builds = history.environments(table.runs)
    by_device = {d: [builds.get((run, d), "") for run in table.runs] for d in devices}
    frozen = history.sentinels()
    vulkan = {i for i, case in known_cases(history).items() if case.axes.get("api") == "vulkan"}
    socs = history.socs(set(devices)) if restarts else {}
    own = epochs(table.runs, table.series, said, restarts, socs)
    accepted |= own.told & np.isfinite(table.log_ns)
    whole_epoch: dict[str, Ints] = {}
    for device, words in whole.items():
        of_whole = epochs(table.runs, [(device, EVERYTHING)], words[None, :], restarts, socs)
        whole_epoch[device] = of_whole.speed[0]
        words[of_whole.told[0]] = SPEEDS.index(Speed.SAME)
    return Nights(
        table=table,
        accepted=accepted,
        said=said,
        epoch=own.speed,
        numerics_epoch=own.numerics,
        os_build=[by_device[device] for device, _ in table.series],
        sentinel=np.array([case in frozen.get(device, ()) for device, case in table.series], np.bool_),
        compilers=[run.compiler or "" for run in runs],
        vulkan=np.array([case in vulkan for _, case in table.series], np.bool_),
        dates=[_date(run) for run in runs],
        whole_said=whole,
        whole_epoch=whole_epoch,
        counting=counts,
        pins=None,
        left_out=unjudged,
    )


def _away(table: NightTable) -> dict[str, int]:
    """Device → nights since its last trial; 0: tonight."""
    last: dict[str, int] = {}
    for (device, _), there in zip(table.series, table.code >= 0, strict=True):
        last[device] = max(last.get(device, 0), int(np.flatnonzero(there)[-1]))
    return {device: len(table.runs) - 1 - night for device, night in last.items()}


def _older(
    history: History, every: Sequence[StoredRun], nights: Nights, restarts: Restarts
) -> list[StoredRun]:
    """Older runs that something is still held against (``outlived``)."""
    first = nights.table.runs[0]
    if not any(run.run_id < first for run in every):
        return []
    lacking = _lacking(nights)
    if not lacking.series:
        return []
    socs = history.socs({device for device, _ in lacking.series}) if restarts else {}

    def before(run_id: str) -> list[StoredRun]:
        return chosen([run for run in every if run.run_id < run_id], run_id)

    return outlived(history, before, first, judged_since(every), lacking, restarts, socs)


def _lacking(nights: Nights) -> Lacking:
    """Series, and phones as a whole, in an epoch that is older than the nights that are looked at."""
    table, whole = nights.table, list(nights.whole_said)
    keys = [*table.series, *((device, EVERYTHING) for device in whole)]
    said = np.concatenate([nights.said, *(nights.whole_said[d][None, :] for d in whole)])
    epoch = np.concatenate([nights.epoch, *(nights.whole_epoch[d][None, :] for d in whole)])
    # Of a phone that was not there it is said, too, that it did not move.
    owner, there = np.array([device for device, _ in table.series]), table.code >= 0
    stood = [(nights.whole_accepted(d) & there[owner == d].any(axis=0))[None, :] for d in whole]
    accepted = np.concatenate([nights.accepted, *stood])
    said, accepted = said[:, :-1], accepted[:, :-1] & (epoch[:, :-1] == epoch[:, -1:])
    number = indices(said.shape[1])
    moved = np.where(np.isin(said, MOVED), number, -1).max(axis=1, initial=-1)
    last = np.where(accepted, number, -1).max(axis=1, initial=-1)
    missing = RULE.window - np.count_nonzero(accepted, axis=1)
    found = np.flatnonzero((moved > last) & (missing > 0) & (epoch[:, 0] == epoch[:, -1]))
    return Lacking([keys[n] for n in found.tolist()], missing[found], epoch[found, -1], last[found] < 0)
