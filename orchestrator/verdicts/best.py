"""Best variants of a suite out of the history: per SoC and workload the one to ship (``domain.best``).

A night of a phone counts for a variant where it passed with a usable number, with the code of its newest
trial on the SoC and with the phone's newest driver. Unlike a baseline's, such a night needs no verdict: a
variant that got slower and that nobody has accepted yet is slower all the same.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator import __version__
from orchestrator.analysis.best.margins import CONFIDENCE
from orchestrator.analysis.best.pick import ALIKE, NEAR
from orchestrator.analysis.speed.rule import RULE
from orchestrator.domain.best import Best, Chosen, SocBest
from orchestrator.domain.case import AxisValue
from orchestrator.domain.errors import UsageError
from orchestrator.domain.results import RunResults
from orchestrator.history.database import KnownCase, StoredRun
from orchestrator.history.history import History
from orchestrator.history.known import known_cases, known_devices
from orchestrator.history.query import FailedTrial, failed_trials, night_table, wall_clocked
from orchestrator.verdicts.best_phones import Phones, driver_warnings, phones_of
from orchestrator.verdicts.best_refused import Refused, refused_in
from orchestrator.verdicts.best_workload import Facts, workload_best
from orchestrator.verdicts.nights import chosen as nights_of
from orchestrator.verdicts.nights import sound

USUAL_INPUTS = "normal"
"""Named inputs test correctness: no app has them."""
Workload = tuple[str, tuple[tuple[str, AxisValue], ...]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to look at; empty: everything."""

    socs: Sequence[str] = ()
    chosen: Chosen = field(default_factory=Chosen)


def best_variants(
    history: History, suite: str, until: str, results: RunResults | None, wanted: Wanted | None = None
) -> Best:
    """
    Args:
        until: newest run that is looked at.
        results: of that run, for known failures and for what its devices cannot run; None: they are gone, and
            the document says so.

    Raises:
        UsageError: no such run, or a SoC that the nights do not have.
        InfraError: a file of the history is missing or damaged.
    """
    wanted = wanted or Wanted()
    runs, _ = sound(history, nights_of(history.runs(suite), until)[-RULE.window :], until)
    if not runs or runs[-1].run_id != until:
        raise UsageError(f"run {until} of suite {suite!r}: not in the history; `tilefarm db store {until}`")
    found = _read(history, runs)
    there = sorted({str(c.axes.get("precision", "")) for c in found.facts.cases.values()})
    if unknown := [p for p in wanted.chosen.precisions if p not in there]:
        raise UsageError(f"precision {unknown[0]!r}: no variant has it; there are {', '.join(there)}")
    refused = refused_in(results) if results is not None else Refused()
    return Best(
        run_id=until,
        suite=suite,
        runs=[run.run_id for run in runs],
        nights=[run.started_at[:10] for run in runs],
        tilefarm=__version__,
        chosen=wanted.chosen,
        socs=[_soc(found, soc, refused, wanted.chosen, results) for soc in _socs(found, wanted.socs)],
        method={
            "window": RULE.window,
            "min_nights": RULE.min_nights,
            "near": NEAR,
            "alike_nmse": ALIKE,
            "confidence": CONFIDENCE,
        },
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """The nights' rows, grouped."""

    facts: Facts
    phones: Phones
    rows: Mapping[str, Mapping[Workload, Sequence[int]]]
    """SoC → workload → series of the table."""


def _read(history: History, runs: Sequence[StoredRun]) -> _Found:
    files = {run.run_id: history.path(run) for run in runs}
    table = night_table(files)
    cases = {i: c for i, c in known_cases(history).items() if c.role == "op" and c.inputs == USUAL_INPUTS}
    devices = known_devices(history, {device for device, _ in table.series})
    phones = phones_of(table, cases, devices)
    rows: dict[str, dict[Workload, list[int]]] = defaultdict(lambda: defaultdict(list))
    workloads = {case_id: _workload(case) for case_id, case in cases.items()}
    socs = {device_id: device.soc for device_id, device in devices.items()}
    for row, (device, case_id) in enumerate(table.series):
        if case_id in workloads:
            rows[socs[device]][workloads[case_id]].append(row)
    every = list(files.values())
    failures: dict[str, list[FailedTrial]] = defaultdict(list)
    for trial in failed_trials(every):
        failures[trial.case_id].append(trial)
    facts = Facts(table, cases, failures, wall_clocked(every), [run.started_at[:10] for run in runs])
    return _Found(facts, phones, rows)


def _soc(found: _Found, soc: str, refused: Refused, chosen: Chosen, results: RunResults | None) -> SocBest:
    own = found.phones.of(soc)
    warnings: list[str] = []
    if any(p.virtual for p in own):
        warnings.append("its phones are virtual: their times say nothing about this SoC")
    if results is None:
        warnings.append("results.json of the newest run is gone: known failures were not left out")
    made = (
        workload_best(found.facts, found.phones, soc, rows, refused, chosen)
        for _, rows in sorted(found.rows[soc].items(), key=_by_name)
    )
    return SocBest(
        soc=soc,
        vendor=found.phones.vendor(soc),
        phones=own,
        workloads=[w for w in made if w.variants or w.left_out],
        warnings=warnings,
        driver_warnings=driver_warnings(
            own, dict(zip(found.facts.table.runs, found.facts.dates, strict=True))
        ),
    )


def _socs(found: _Found, wanted: Sequence[str]) -> list[str]:
    there = sorted(found.rows)
    for soc in wanted:
        if soc not in there:
            raise UsageError(f"SoC {soc!r}: not in these nights, which have {', '.join(there) or 'none'}")
    return [soc for soc in there if not wanted or soc in wanted]


def _workload(case: KnownCase) -> Workload:
    return case.op, tuple(sorted(case.workload.items()))


def _by_name(item: tuple[Workload, Sequence[int]]) -> tuple[str, list[tuple[str, str]]]:
    op, parameters = item[0]
    return op, [(name, f"{value:>12}" if type(value) is int else str(value)) for name, value in parameters]
