"""How far speed is by now from pinned runs: what accepted shifts and small steps add up to.

``Findings.drift`` (``domain.finding.Drift``) has entries by pinned run of the suite, the newest first, and by
SoC: one for all kernels together (``kernel`` is empty), then one for each kernel whose median moved beyond
the rule's threshold, the largest first. ``effect`` is a log ratio: 0.06 is 6 % slower than then. Raw
latencies are never pooled: each phone is compared with itself, phones are averaged, and the median over
cases is taken.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from orchestrator.analysis.speed.baseline import same_clock
from orchestrator.analysis.speed.rows import Bools, Floats
from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.words import faster_or_slower
from orchestrator.domain.finding import Drift
from orchestrator.domain.results import RunResults
from orchestrator.history.database import StoredRun
from orchestrator.history.history import History
from orchestrator.history.query import NightTable, night_table
from orchestrator.verdicts.nights import chosen, sound

BESIDE = 3
"""Nights before and after the pinned one, with its code and driver, whose median stands for it: a single
night's own weather is 1 to 2 %."""
LAST = 2 * BESIDE + 1
"""Nights up to tonight, likewise."""
STILL = 0.005
"""Less than this is called unchanged."""


@dataclass(frozen=True, slots=True)
class _Level:
    """Of series, at one time."""

    log_ns: Floats
    """NaN: not known then."""
    clock_hz: Floats
    basis: Floats


def pinned_drift(
    history: History, results: RunResults, tonight: NightTable, soc_of: Mapping[str, str]
) -> list[Drift]:
    """
    Args:
        tonight: the suite's nights, tonight last.
        soc_of: device → SoC.

    Raises:
        InfraError: a file of the history is missing or damaged.
    """
    run_id = results.run.run_id
    pins = sorted(
        ((run, name) for name, run in history.baselines.pinned().items() if run < run_id), reverse=True
    )
    if not pins:
        return []
    runs = history.runs(results.run.suite)
    found: list[Drift] = []
    for pinned, name in pins:
        last = [n for n, run in enumerate(tonight.runs) if run > pinned][-LAST:]
        beside, _ = sound(history, _beside(runs, pinned, tonight.runs[last[0]]), "")
        if pinned not in [run.run_id for run in beside]:
            continue  # of another suite, or damaged
        now = _level(tonight, len(tonight.runs) - 1, last)
        table = night_table({run.run_id: history.path(run) for run in beside})
        then = _level(table, table.runs.index(pinned), list(range(len(table.runs))))
        delta = _delta(tonight, now, table, then)
        found += _drifts(name, pinned, results, tonight, delta, soc_of)
    return found


def _beside(runs: Sequence[StoredRun], pinned: str, until: str) -> list[StoredRun]:
    """The pinned run and nights around it before run ``until``; empty where the suite has it not."""
    mine = next((run for run in runs if run.run_id == pinned), None)
    if mine is None:
        return []
    before = [run for run in chosen(runs, pinned) if run.run_id < pinned][-BESIDE:]
    later = [run for run in runs if pinned < run.run_id < until and run.whole_suite]
    return [*before, mine, *chosen(later[: 4 * BESIDE], until)[:BESIDE]]


def _level(table: NightTable, at: int, columns: Sequence[int]) -> _Level:
    """Medians of those nights that have the code, driver and basis of night ``at``; NaN where that one has no
    number."""
    alike: Bools = np.isfinite(table.log_ns[:, columns]) & np.isfinite(table.log_ns[:, [at]])
    for own in (table.code, table.driver, table.basis):
        alike &= own[:, columns] == own[:, [at]]
    alike &= same_clock(table.clock_hz[:, columns], table.clock_hz[:, [at]])
    log_ns = np.full(len(table.series), np.nan)
    known = alike.any(axis=1)
    log_ns[known] = np.nanmedian(np.where(alike, table.log_ns[:, columns], np.nan)[known], axis=1)
    return _Level(log_ns, table.clock_hz[:, at], table.basis[:, at].astype(np.float64))


def _delta(tonight: NightTable, now: _Level, table: NightTable, then: _Level) -> Floats:
    """(series of ``tonight``,) log ratio since then; NaN where the two cannot be compared."""
    row = {series: number for number, series in enumerate(table.series)}
    at = np.array([row.get(series, -1) for series in tonight.series], np.int64)
    alike = (at >= 0) & (now.basis == then.basis[at]) & same_clock(now.clock_hz, then.clock_hz[at])
    return np.where(alike, now.log_ns - then.log_ns[at], np.nan)


def _drifts(
    name: str,
    pinned: str,
    results: RunResults,
    tonight: NightTable,
    delta: Floats,
    soc_of: Mapping[str, str],
) -> list[Drift]:
    by_case: dict[str, dict[str, list[tuple[str, float]]]] = defaultdict(dict)
    for (device, case_id), value in zip(tonight.series, delta.tolist(), strict=True):
        info = results.cases.get(case_id)
        if isfinite(value) and device in soc_of and info is not None and info.role == "op":
            by_case[soc_of[device]].setdefault(case_id, []).append((device, value))
    found: list[Drift] = []
    for soc, cases in sorted(by_case.items()):
        kernels: dict[str, dict[str, list[tuple[str, float]]]] = defaultdict(dict)
        for case_id, phones in cases.items():
            kernels[results.cases[case_id].case.kernel][case_id] = phones
        own = [_drift(name, pinned, soc, kernel, inside) for kernel, inside in kernels.items()]
        moved = [d for d in own if abs(d.effect) > RULE.threshold]
        found.append(_drift(name, pinned, soc, "", cases))
        found += sorted(moved, key=lambda d: (-abs(d.effect), d.kernel))
    return found


def _drift(
    name: str, pinned: str, soc: str, kernel: str, cases: Mapping[str, Sequence[tuple[str, float]]]
) -> Drift:
    effect = float(np.median([np.mean([value for _, value in phones]) for phones in cases.values()]))
    moved = "unchanged" if abs(effect) < STILL else faster_or_slower(effect)
    return Drift(
        baseline=name,
        run_id=pinned,
        soc=soc,
        kernel=kernel,
        effect=effect,
        phones=len({device for phones in cases.values() for device, _ in phones}),
        cases=len(cases),
        sentence=f"since {name}: {moved}",
    )
