"""What second measurements said, of one finding and of several; a finding is asked about once, so that the
answer may be an earlier night's."""

import math
from collections import Counter
from collections.abc import Sequence

from orchestrator.domain.finding import Finding
from reports.changes.words import CONFIRMED, night, signed

NOT_ASKED = {
    "": "not asked",
    "known": "not asked again",
    "budget": "beyond the night's budget",
    "numerics": "numerics are not measured twice",
    "whole": "all variants together are not measured twice",
    "drift": "a drift is not measured twice",
}
"""Why nobody measured it a second time."""


def second_look(finding: Finding) -> str:
    """``confirmed by a second measurement on 22 Nov, in turns: +8.2 % and +7.9 %``"""
    said = CONFIRMED[finding.confirmed]
    if finding.confirmed == "not asked":
        if finding.not_asked == "budget":
            return f"{said}: {_not_asked(finding)}"
        return _not_asked(finding) if finding.not_asked else said
    if finding.confirmed_in:
        said += f" on {night(finding.confirmed_in)}"
    effects = [signed(d.effect) for d in finding.duels if math.isfinite(d.effect)]
    return f"{said}, in turns: {' and '.join(dict.fromkeys(effects))}" if effects else said


def second_looks(findings: Sequence[Finding]) -> str:
    """``1 yes (22 Nov), 23 not asked again: known since 22 Nov``; without numbers where all are alike."""
    answers = Counter(_answer(f) for f in findings if f.confirmed != "not asked")
    others = Counter(_not_asked(f) for f in findings if f.confirmed == "not asked")
    said = [*answers.most_common(), *others.most_common()]
    if len(said) < 2:
        return "".join(words for words, _ in said) or NOT_ASKED[""]
    return ", ".join(f"{number} {words}" for words, number in said)


def confirmed(findings: Sequence[Finding]) -> str:
    """``confirmed in a second measurement on 22 Nov: 4 of 6, refuted 1``; empty where none was asked for."""
    asked = [f for f in findings if f.confirmed != "not asked"]
    if not asked:
        return ""
    nights = {f.confirmed_in for f in asked}
    when = f" on {night(first)}" if len(nights) == 1 and (first := nights.pop()) else ""
    answers = Counter(f.confirmed for f in asked)
    if not answers["yes"] and not answers["no"]:
        return f"a second measurement{when} could not tell"
    told = f"confirmed in a second measurement{when}: {answers['yes']} of {len(findings)}"
    return told + (f", refuted {answers['no']}" if answers["no"] else "")


def _answer(finding: Finding) -> str:
    when = f" ({night(finding.confirmed_in)})" if finding.confirmed_in else ""
    return f"{finding.confirmed}{when}"


def _not_asked(finding: Finding) -> str:
    """``not asked again: known since 22 Nov``"""
    why = NOT_ASKED[finding.not_asked]
    return f"{why}: known since {night(finding.known_since)}" if finding.known_since else why
