"""Findings against what the matrix knows: flakes and slowness that are no news, and what is better than that.

Known failures are judged trial by trial (``analysis.outcome``); these two need the nights before.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import isfinite, log

from orchestrator.analysis.outcome import compile_recorded, trial_driver
from orchestrator.domain.case import Case
from orchestrator.domain.expectation import Expectation
from orchestrator.domain.finding import Finding, Findings, SeriesRow
from orchestrator.domain.results import RunResults
from orchestrator.domain.verdict import Verdict
from orchestrator.verdicts.nights import Nights

FLAKES = ("nondeterministic", "hash_changed")
"""What a flaky case does now and then."""
_NO_RESULT = (Verdict.INFRA, Verdict.UNSUPPORTED, Verdict.INVALID)


def expected(findings: Findings, results: RunResults, nights: Nights, today: date) -> Findings:
    """With ``Finding.expected`` where a known flake or slowness covers all phones that show it, and
    ``Findings.unexpected``.

    Raises:
        UsageError: a ``when`` that is no selection expression.
    """
    known = [
        _Known(e, compile_recorded(e.when))
        for e in results.expectations
        if e.kind != "fails" and not e.expired(today)
    ]
    if not known:
        return findings
    there = _There(results, nights)
    return replace(
        findings,
        findings=[_finding(f, known, there) for f in findings.findings],
        unexpected=[*findings.unexpected, *_better(findings.series, known, there)],
    )


@dataclass(frozen=True, slots=True)
class _Known:
    expectation: Expectation
    selects: Callable[[Case], bool]

    @property
    def words(self) -> str:
        e = self.expectation
        where = f", matrix.yaml:{e.line}" if e.line else ""
        return f"{e.reason} (owner {e.owner}{where}, until {e.expires.isoformat()})"


class _There:
    """Cases and drivers of tonight, and verdicts of the nights before."""

    def __init__(self, results: RunResults, nights: Nights) -> None:
        self._table = nights.table
        self._row = {series: number for number, series in enumerate(nights.table.series)}
        devices = {d.device_id: d for d in results.devices}
        self._cases = {i: info.case for i, info in results.cases.items()}
        self._drivers: dict[tuple[str, str], str] = {}
        self.phones: Mapping[tuple[str, str], list[str]] = defaultdict(list)
        """(SoC, case) → devices with a trial."""
        for trial in results.trials:
            device, case = devices[trial.device_id], self._cases[trial.case_id]
            self._drivers[trial.device_id, trial.case_id] = trial_driver(trial, device, case)
            self.phones[device.soc.name, trial.case_id].append(trial.device_id)

    def covered(self, known: _Known, soc: str, case_id: str, devices: Sequence[str]) -> bool:
        case = self._cases.get(case_id)
        return (
            case is not None
            and bool(devices)
            and known.selects(case)
            and all(
                known.expectation.covers_device(soc, self._drivers.get((d, case_id), "")) for d in devices
            )
        )

    def steady_nights(self, device_id: str, case_id: str) -> int:
        """In a row up to tonight that passed; nights without a result count for nothing."""
        row, steady = self._row.get((device_id, case_id)), 0
        if row is None:
            return 0
        for night in range(len(self._table.runs) - 1, -1, -1):
            verdict = self._table.verdict_text(row, night)
            if not verdict or verdict in _NO_RESULT:
                continue
            if verdict != Verdict.PASS:
                break
            steady += 1
        return steady


def _finding(found: Finding, known: Sequence[_Known], there: _There) -> Finding:
    devices = [p.device_id for p in found.phones]
    for each in known:
        e = each.expectation
        slow = e.kind == "slow" and found.what == "regressed"
        if not slow and not (e.kind == "flakes" and found.what in FLAKES):
            continue
        if not there.covered(each, found.soc, found.case_id, devices):
            continue
        if not slow:
            return replace(found, expected=f"a known flake: {each.words}")
        if found.effect <= log(e.slower):
            return replace(found, expected=f"known to be up to {e.slower - 1:.1%} slower: {each.words}")
        beyond = f"beyond the {e.slower - 1:.1%} that are known: {each.words}"
        return replace(found, detail=f"{found.detail}; {beyond}")
    return found


def _better(rows: Sequence[SeriesRow], known: Sequence[_Known], there: _There) -> list[str]:
    """One sentence for each entry and SoC."""
    said: list[str] = []
    for each in known:
        covered: dict[str, list[SeriesRow]] = {}
        for row in rows:
            if there.covered(each, row.soc, row.case_id, there.phones.get((row.soc, row.case_id), ())):
                covered.setdefault(row.soc, []).append(row)
        for soc, own in covered.items():
            better = [r for r in own if _is_better(r, each.expectation, there)]
            if better:
                many = f"{len(better)} of {len(own)} cases on {soc}"
                said.append(
                    f"{many} {_news(each.expectation)}: {each.words}; remove the entry if it stays so"
                )
    return said


def _is_better(row: SeriesRow, e: Expectation, there: _There) -> bool:
    if e.kind == "flakes":
        phones = there.phones[row.soc, row.case_id]
        return min(there.steady_nights(d, row.case_id) for d in phones) >= e.nights
    if row.verdict == "improved":
        return True
    # The same as ever, where a slowness of that size would have been found.
    return row.verdict == "same" and isfinite(row.detectable) and row.detectable < log(e.slower)


def _news(e: Expectation) -> str:
    if e.kind == "flakes":
        return f"passed in each of the last {e.nights} nights, although they are known to flake"
    return f"are not slower than their baseline, although up to {e.slower - 1:.1%} are known"
