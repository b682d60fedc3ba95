"""What people decided, as a run's judgement takes it, and how a run's findings count because of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from orchestrator.analysis.alerts import alarm
from orchestrator.domain.finding import Finding, Findings, Triage
from orchestrator.triage.restarts import Restarts

QUIET = ("acknowledged", "noise", "accepted", "fixed", "expected")


@dataclass(frozen=True, slots=True)
class Decided:
    """What people decided (``triage``)."""

    triage: Mapping[str, Triage] = field(default_factory=dict[str, Triage])
    """Finding id → decision."""
    restarts: Restarts = field(default_factory=Restarts)
    """Accepted shifts."""
    today: date | None = None
    """Decisions may have expired by then; None: by the day of the run."""
    unread: Sequence[str] = ()
    """What is wrong with files of decisions: those in them do not count."""


def counted(findings: Findings, decided: Decided, today: date) -> Findings:
    """With how many findings nobody has to look at, and why; in its sentence, too."""
    counts = dict.fromkeys(QUIET, 0)
    found: list[Finding] = []
    for finding in findings.findings:
        told = alarm(finding, today)
        found.append(_told(finding, told))
        if told:
            continue
        state = finding.triage.state if finding.triage else "new"
        word = "expected" if state == "new" else state
        if finding.confirmed != "no":
            counts[word] += 1
    words = [f"{count} {word}" for word, count in counts.items() if count]
    said = f"{findings.sentence}; of the findings {', '.join(words)}" if words else findings.sentence
    unread = [f"triage: {problem}. Its decisions do not count in this run" for problem in decided.unread]
    return replace(
        findings,
        findings=found,
        counts=findings.counts | counts,
        sentence=said,
        not_measured=[*findings.not_measured, *unread],
    )


def _told(finding: Finding, why: str) -> Finding:
    """With the reason for an alarm in spite of a decision."""
    if not why or finding.triage is None or finding.triage.state == "new":
        return finding
    return replace(finding, triage=replace(finding.triage, told=why))
