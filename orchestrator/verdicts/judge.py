"""The whole way of one run: history in, ``Findings`` out, and what the night says of its series kept."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date

from orchestrator.analysis.speed.rule import RULE
from orchestrator.domain.confirmation import Confirmation
from orchestrator.domain.finding import Findings
from orchestrator.domain.results import RunResults
from orchestrator.history.history import History
from orchestrator.history.known import known_devices
from orchestrator.verdicts.confirming import confirmed
from orchestrator.verdicts.decided import Decided, counted
from orchestrator.verdicts.document import document
from orchestrator.verdicts.drifts import drifts, is_due
from orchestrator.verdicts.expected import expected
from orchestrator.verdicts.findings import speed_findings, triaged, unconfirmed_findings
from orchestrator.verdicts.grouping import grouped
from orchestrator.verdicts.memory import freeze, keep
from orchestrator.verdicts.nights import Nights, load
from orchestrator.verdicts.numeric_findings import numerics_findings, told_once
from orchestrator.verdicts.numerics import flags
from orchestrator.verdicts.phones import presences
from orchestrator.verdicts.pinned import pinned_drift
from orchestrator.verdicts.second_looks import with_second_looks
from orchestrator.verdicts.speed import Judged, judge
from orchestrator.verdicts.whole_findings import whole_findings


def first_look(history: History, results: RunResults, decided: Decided | None = None) -> Judged:
    """The speed of a run that is in the history, before anything is measured again; nothing is kept of it.
    ``confirming.questions`` says what is worth that.

    Raises:
        InfraError: the history cannot be read.
    """
    decided = decided or Decided()
    nights = load(history, results.run.suite, results.run.run_id, decided.restarts, _asked(results))
    soc_of = {d.device_id: d.soc.name for d in results.devices}
    thresholds = {i: info.min_effect for i, info in results.cases.items() if info.min_effect}
    return judge(nights, soc_of | _known_socs(history, nights, soc_of), thresholds)


def judge_run(
    history: History,
    results: RunResults,
    decided: Decided | None = None,
    confirmation: Confirmation | None = None,
    first: Judged | None = None,
    *,
    scan: bool = False,
) -> Findings:
    """What changed in a run that is in the history.

    Args:
        confirmation: what was measured again.
        first: of the same run and decisions, where it is known already.
        scan: look for slow drift, which is else done in the first night of a week.

    Raises:
        InfraError: the history cannot be read.
    """
    decided = decided or Decided()
    judged = first or first_look(history, results, decided)
    if confirmation is not None:
        judged = confirmed(judged, confirmation)
    soc_of = {device: judged.socs[int(judged.matrix.soc[n])] for n, device in enumerate(judged.devices)}
    pinned = sorted(set(history.baselines.pinned().values()), reverse=True)
    flagged = told_once(flags(judged.nights, results, pinned), soc_of)
    told = speed_findings(judged) + whole_findings(judged) + numerics_findings(flagged, soc_of, judged)
    if scan or is_due(judged):
        told += drifts(judged)
    told, answers = with_second_looks(history, judged, told)
    groups = grouped(judged, told, results.cases)
    found = triaged([t.finding for t in told], decided.triage)
    keep(history, results, judged, found, answers)
    freeze(history, judged, results)
    names = {d.device_id: d.name for d in known_devices(history, judged.devices).values()}
    findings = document(
        results, judged, found, groups, flagged, presences(judged, names), sum(t.drift for t in told)
    )
    findings = replace(
        findings,
        unconfirmed=triaged(unconfirmed_findings(judged), decided.triage),
        drift=pinned_drift(history, results, judged.nights.table, soc_of),
    )
    today = decided.today or date.fromisoformat(results.run.started_at[:10])
    return counted(expected(findings, results, judged.nights, today), decided, today)


def _asked(results: RunResults) -> Callable[[str, str, int], bool]:
    """What the run was to measure: a case that left the suite is not missing, nor one that was pruned, nor a
    phone that ``--device`` did not name or that has not been there for a baseline's nights."""
    there = {d.device_id for d in results.devices} | {m.device_id for m in results.missing}
    everyone = not results.run.wanted
    pruned = {(p.device_id, p.case_id) for p in results.pruned}

    def asked(device_id: str, case_id: str, away: int) -> bool:
        expected = device_id in there or (everyone and away <= RULE.window)
        return expected and case_id in results.cases and (device_id, case_id) not in pruned

    return asked


def _known_socs(history: History, nights: Nights, known: Mapping[str, str]) -> dict[str, str]:
    missing = {device for device, _ in nights.table.series} - known.keys()
    return history.socs(missing) if missing else {}
