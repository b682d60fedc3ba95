"""Which findings of a run people are told of, whatever a person decided about them: one answer for the exit
code, annotations, the terminal and reports."""

from datetime import date

from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.words import faster_or_slower
from orchestrator.domain.finding import Finding, Findings, Triage


def alerts(findings: Findings, today: date) -> list[Finding]:
    """Findings that nobody has dealt with, in their order: new ones, those whose decision expired, those that
    grew since, and those that came back after they were marked fixed. Not those that a second look in
    the same night refuted.

    Improvements are among them; an exit code looks at ``Finding.what``.
    """
    return [f for f in findings.findings if alarm(f, today)]


def alarm(finding: Finding, today: date) -> str:
    """Why people are told: ``new``, ``acknowledged until 2026-12-01, which has passed``, ``acknowledged at
    5.0 % slower, now 50.0 % slower``, ``regressed again``; empty: they are not."""
    if finding.confirmed == "no":
        return ""
    decided = finding.triage
    if decided is None or decided.state == "new":
        return "" if finding.expected else "new"
    if decided.state == "fixed" and decided.again:
        when = f", marked fixed on {decided.decided_at[:10]}" if decided.decided_at else ""
        return f"{finding.what.replace('_', ' ')} again{when}"
    if decided.state in ("acknowledged", "noise"):
        if expired(decided, today):
            return f"{decided.state} until {decided.expires}, which has passed"
        if _grown(finding, decided):
            then, now = faster_or_slower(decided.effect), faster_or_slower(finding.effect)
            return f"{decided.state} at {then}, now {now}"
    return ""


def _grown(finding: Finding, decided: Triage) -> bool:
    """All of its interval lies farther out than what was decided about, by more than what matters: that
    decision was about another change."""
    if finding.kind != "speed" or not decided.effect:
        return False
    side = 1 if decided.effect > 0 else -1
    nearest = min(side * finding.low, side * finding.high)
    return nearest > side * decided.effect + RULE.threshold


def expired(decided: Triage, today: date) -> bool:
    """The day of ``expires`` itself is still covered; a date that cannot be read covers nothing."""
    if not decided.expires:
        return False
    try:
        return today > date.fromisoformat(decided.expires)
    except ValueError:
        return True
