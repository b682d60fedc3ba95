"""Which findings of a run people are told of, whatever a person decided about them: one answer for the exit
code, annotations, the terminal and reports."""

from datetime import date

from orchestrator.domain.finding import Finding, Findings, Triage


def alerts(findings: Findings, today: date) -> list[Finding]:
    """Findings that nobody has dealt with, in their order: new ones, those whose decision expired, and those
    that came back after they were marked fixed. Not those that a second look in the same night refuted.

    Improvements are among them; an exit code looks at ``Finding.what``.
    """
    return [f for f in findings.findings if alarm(f, today)]


def alarm(finding: Finding, today: date) -> str:
    """Why people are told: ``new``, ``acknowledged until 2026-12-01, which has passed``, ``regressed again``;
    empty: they are not."""
    if finding.confirmed == "no":
        return ""
    decided = finding.triage
    if decided is None or decided.state == "new":
        return "" if finding.expected else "new"
    if decided.state == "fixed" and decided.again:
        when = f", marked fixed on {decided.decided_at[:10]}" if decided.decided_at else ""
        return f"{finding.what.replace('_', ' ')} again{when}"
    if decided.state in ("acknowledged", "noise") and expired(decided, today):
        return f"{decided.state} until {decided.expires}, which has passed"
    return ""


def expired(decided: Triage, today: date) -> bool:
    """The day of ``expires`` itself is still covered; a date that cannot be read covers nothing."""
    if not decided.expires:
        return False
    try:
        return today > date.fromisoformat(decided.expires)
    except ValueError:
        return True
