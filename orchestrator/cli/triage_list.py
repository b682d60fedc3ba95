"""Findings of a run beside what was decided about them, for a person and for a script."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

from orchestrator.analysis.alerts import alarm
from orchestrator.analysis.words import faster_or_slower
from orchestrator.domain.finding import Finding, Findings
from orchestrator.domain.wire import to_json
from orchestrator.triage.decision import Decision
from orchestrator.triage.folder import by_finding
from reports.text import visible

AT_ONCE = 8
"""Findings of a group that are listed one by one."""


def decided(findings: Findings, decisions: Sequence[Decision], started_at: str) -> list[Finding]:
    """All findings of a run with what the files say by now.

    Args:
        started_at: of the run.
    """
    known = {i: d.triage(s, findings.run_id, started_at) for i, (d, s) in by_finding(decisions).items()}
    return [replace(f, triage=known.get(f.finding_id)) for f in findings.findings]


def lines(
    findings: Findings, shown: Sequence[Finding], today: date, labels: Mapping[str, str], *, everything: bool
) -> Iterator[str]:
    """Groups with those of their findings that are in ``shown``, then findings of no group.

    Args:
        labels: case id → label.
        everything: list all findings of a group, however many.
    """
    rest = {f.finding_id: f for f in shown}
    for group in findings.groups:
        inside = [rest.pop(i) for i in group.findings if i in rest]
        if not inside:
            continue
        yield f"{group.group_id}  {visible(group.sentence)}"
        some = inside if everything else inside[:AT_ONCE]
        yield from (f"    {_line(f, today, labels)}" for f in some)
        if more := len(inside) - len(some):
            yield f"    and {more} more of the group; --all lists them"
    yield from (_line(f, today, labels) for f in rest.values())


def _line(found: Finding, today: date, labels: Mapping[str, str]) -> str:
    where = f"{found.soc} phone {found.device_id}" if found.device_id else found.soc
    effect = faster_or_slower(found.effect) if found.kind == "speed" else f"{found.what}: {found.detail}"
    label = labels.get(found.case_id, found.case_id)
    words = (where, effect, label)
    shown = "  ".join(visible(word) for word in words)
    return f"{found.finding_id}  {shown}; since {_day(found.since)}; {visible(_word(found, today))}"


def _day(run_id: str) -> str:
    """``2026-11-22`` of a run id, which begins with it."""
    day = run_id[:8]
    return f"{day[:4]}-{day[4:6]}-{day[6:]}" if len(day) == 8 and day.isdecimal() else visible(run_id)


def _word(found: Finding, today: date) -> str:
    """Why people are told of it, or what was decided."""
    if told := alarm(found, today):
        return told
    if found.triage is None or found.triage.state == "new":
        return f"expected: {found.expected}" if found.expected else "not confirmed by a second measurement"
    until = f" until {found.triage.expires}" if found.triage.expires else ""
    note = f": {found.triage.note}" if found.triage.note else ""
    return f"{found.triage.state} by {found.triage.owner}{until}{note}"


def document(
    findings: Findings, shown: Sequence[Finding], today: date, labels: Mapping[str, str]
) -> dict[str, object]:
    """For scripts: each finding as findings.json has it, its case's label, and why people are told of it."""
    ids = {f.finding_id for f in shown}
    inside = [(g, [i for i in g.findings if i in ids]) for g in findings.groups]
    return {
        "run_id": findings.run_id,
        "suite": findings.suite,
        "findings": [
            json.loads(to_json(f)) | {"case": labels.get(f.case_id, ""), "alarm": alarm(f, today)}
            for f in shown
        ],
        "groups": [
            {"group_id": g.group_id, "sentence": g.sentence, "findings": there}
            for g, there in inside
            if there
        ],
    }
