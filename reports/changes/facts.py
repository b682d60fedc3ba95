"""What is known about one finding besides its charts: how sure, since when, against what."""

import math

from orchestrator.domain.finding import EVERYTHING, Finding
from reports.changes.events import differences
from reports.changes.model import Entry
from reports.changes.second import second_look
from reports.changes.words import cause_words, chance, change, long_night

Fact = tuple[str, str]


def facts(entry: Entry) -> tuple[Fact, ...]:
    """Names and values, in the order of reading."""
    finding = entry.finding
    found: list[Fact] = [("Variant", entry.full), ("Cause", cause_words(finding.cause))]
    if finding.since:
        found.append(("Since", f"{long_night(finding.since)}, run {finding.since}"))
    if finding.kind == "speed" and math.isfinite(finding.low) and math.isfinite(finding.high):
        found.append(("95 % interval", f"{change(finding.low)} to {change(finding.high)}"))
    if finding.kind == "speed" and finding.case_id != EVERYTHING:
        found.append(("False discovery rate", f"q {chance(finding.q, '= ')}"))
    found.append(("Second measurement", second_look(finding)))
    if finding.case_id == EVERYTHING:
        return tuple(found)
    found.append(("Baseline", _baseline(finding)))
    found.append(("Code", _pair(finding.code_before[:16], finding.code_after[:16])))
    found.append(("Driver and OS", _environment(finding.environment_before, finding.environment_after)))
    return tuple(found)


def _baseline(finding: Finding) -> str:
    if not finding.baseline:
        return "none"
    first, last = finding.baseline[0], finding.baseline[-1]
    if len(finding.baseline) == 1:
        return f"{long_night(last)}, run {last}"
    span = f"{long_night(first)} to {long_night(last)}"
    return f"{len(finding.baseline)} accepted nights, {span}; the last one is run {last}"


def _environment(before: str, after: str) -> str:
    if before == after or not before or not after:
        return _pair(before, after)
    gone, came = differences(before, after)
    return f"{gone} → {came}"


def _pair(before: str, after: str) -> str:
    if before == after:
        return f"{after}, unchanged" if after else "not known"
    return f"{before or 'not known'} → {after or 'not known'}"
