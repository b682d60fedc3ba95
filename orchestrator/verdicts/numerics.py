"""What cases compute tonight against their pinned baseline: flags of each case on each SoC."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.speed.numeric_trend import NumericFlag, NumericNight, numeric_flags
from orchestrator.analysis.speed.rows import Bools
from orchestrator.domain.finding import NumericsWord
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Trial
from orchestrator.history.query import NightTable
from orchestrator.verdicts.nights import Nights

WORDS: Mapping[NumericFlag, NumericsWord] = {
    NumericFlag.HASH_CHANGED: "hash_changed",
    NumericFlag.NMSE_DOUBLED: "nmse_doubled",
    NumericFlag.LIMIT_CROSSED: "limit_crossed",
    NumericFlag.NONDETERMINISTIC: "nondeterministic",
    NumericFlag.IMPROVED: "improved",
}


@dataclass(frozen=True, slots=True)
class Flagged:
    """One flag of a case on one device."""

    device_id: str
    case_id: str
    flag: NumericsWord
    before: NumericNight
    after: NumericNight
    baseline_run: str
    code_before: str
    environment_before: str
    """Driver and OS build."""


@dataclass(frozen=True, slots=True)
class _Baseline:
    """A night of a series that has an output."""

    table: NightTable
    series: int
    night: int
    os_build: str


def flags(nights: Nights, results: RunResults, pinned: Sequence[str]) -> list[Flagged]:
    """Errors are held against a pinned run, else against the first night since the baseline was started: a
    slow drift adds up. An output's hash is held against the night before: it is news once.

    Args:
        pinned: runs that stay baselines by name, the newest first.
    """
    row = {series: number for number, series in enumerate(nights.table.series)}
    found: list[Flagged] = []
    for trial in results.trials:
        number = row.get((trial.device_id, trial.case_id))
        if number is None or not trial.outputs:
            continue
        limit = float(min((t.nmse for t in results.cases[trial.case_id].tolerance.values()), default=np.inf))
        after = _tonight(trial, limit)
        for then, wanted in _baselines(nights, number, pinned):
            before = _then(then, limit, after.executions)
            driver = then.table.driver_text(then.series, then.night)
            found += [
                Flagged(
                    trial.device_id,
                    trial.case_id,
                    WORDS[flag],
                    before,
                    after,
                    baseline_run=then.table.runs[then.night],
                    code_before=then.table.code_text(then.series, then.night),
                    environment_before="; ".join(filter(None, (driver, then.os_build))),
                )
                for flag in numeric_flags(before, after)
                if (flag is NumericFlag.HASH_CHANGED) == wanted
            ]
    return found


def with_output(table: NightTable, series: int) -> Bools:
    """(nights,) A trial that came to no output is nothing to compare with."""
    # They are sorted: the empty one is the first.
    return table.hash[series] >= (1 if table.hashes[:1] == [""] else 0)


def _baselines(nights: Nights, series: int, pinned: Sequence[str]) -> Iterator[tuple[_Baseline, bool]]:
    """Nights to compare with, and whether it is the hash that is compared."""
    table = nights.table
    same = nights.numerics_epoch[series, :-1] == nights.numerics_epoch[series, -1]
    there = np.flatnonzero(with_output(table, series)[:-1] & same).tolist()
    if there:
        yield _night(nights, series, there[-1]), True
    for run in pinned:
        if run not in table.runs:
            held = _pin(nights, series, run)
        else:
            night = table.runs.index(run)
            held = _night(nights, series, night) if night in there else None
        if held is not None:
            yield held, False
            return
    if there:
        yield _night(nights, series, there[0]), False


def _night(nights: Nights, series: int, night: int) -> _Baseline:
    return _Baseline(nights.table, series, night, nights.os_build[series][night])


def _pin(nights: Nights, series: int, run: str) -> _Baseline | None:
    """An older pinned run, where the series has an output in it, of tonight's epoch."""
    pins, key = nights.pins, nights.table.series[series]
    if pins is None or run not in pins.table.runs or key not in pins.row:
        return None
    row, night = pins.row[key], pins.table.runs.index(run)
    epoch = nights.numerics_epoch[series, -1]
    if not with_output(pins.table, row)[night] or pins.numerics_epoch[row, night] != epoch:
        return None
    return _Baseline(pins.table, row, night, pins.os_build.get((run, key[0]), ""))


def _tonight(trial: Trial, limit: float) -> NumericNight:
    worst = max(trial.outputs, key=lambda o: (o.failing, not o.nmse <= limit, o.nmse))
    executions = sum(worst.hashes.values())
    return NumericNight(
        hash=worst.hash,
        nmse=worst.nmse,
        limit=limit,
        failing=sum(o.failing for o in trial.outputs),
        nonfinite=sum(o.nonfinite_mismatch for o in trial.outputs),
        executions=executions,
        other=max(sum(o.hashes.values()) - o.hashes.get(o.hash, 0) for o in trial.outputs),
    )


def _then(then: _Baseline, limit: float, executions: int) -> NumericNight:
    """Of an earlier night. The history counts its different outputs: of as many executions as tonight, that
    is the smallest share that may have differed."""
    table, series, night = then.table, then.series, then.night
    verdict = table.verdict_text(series, night)
    return NumericNight(
        hash=table.hash_text(series, night),
        nmse=float(table.numerics["nmse"][series, night]),
        limit=limit,
        failing=int(verdict == "mismatch"),
        nonfinite=0,
        executions=max(executions, int(table.distinct[series, night]), 1),
        other=int(max(table.distinct[series, night] - 1, 0)),
    )
