"""The whole way of one run: history in, ``Findings`` out, and what the night says of its series kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.domain.finding import Findings, Triage
from orchestrator.domain.results import RunResults
from orchestrator.history.history import History
from orchestrator.verdicts.document import document
from orchestrator.verdicts.confirming import confirmed, sentence
from orchestrator.verdicts.findings import (
    grouped,
    numerics_findings,
    speed_findings,
    triaged,
    unconfirmed_findings,
)
from orchestrator.verdicts.memory import freeze, keep
from orchestrator.verdicts.nights import Nights, Restarts, load
from orchestrator.verdicts.numerics import flags
from orchestrator.verdicts.phones import everything
from orchestrator.verdicts.speed import judge


def _never(_device: str, _case: str, _run: str) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Decided:
    """What people decided (``triage``)."""

    triage: Mapping[str, Triage] = field(default_factory=dict[str, Triage])
    """Finding id → decision."""
    restarts: Restarts = _never


def judge_run(history: History, results: RunResults, decided: Decided | None = None) -> Findings:
    """What changed in a run that is in the history.

    Raises:
        InfraError: the history cannot be read.
    """
    decided = decided or Decided()
    nights = load(history, results.run.suite, results.run.run_id, decided.restarts)
    soc_of = {d.device_id: d.soc.name for d in results.devices}
    soc_of |= _known_socs(history, nights, soc_of)
    judged = judge(nights, soc_of, {})
    flagged = flags(nights, results, sorted(set(history.pinned().values()), reverse=True))
    found = speed_findings(judged) + numerics_findings(flagged, soc_of, judged)
    found = triaged(found, decided.triage)
    groups = grouped(judged, found, results.cases)
    keep(history, results, judged)
    freeze(history, judged, results)
    return document(results, judged, found, [*everything(judged), *groups], flagged)


def _known_socs(history: History, nights: Nights, known: Mapping[str, str]) -> dict[str, str]:
    missing = {device for device, _ in nights.table.series} - known.keys()
    return history.socs(missing) if missing else {}
