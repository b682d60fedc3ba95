"""Which trials the pages want of the history: those of the findings that are read first, on every SoC."""

import math

from orchestrator.domain.finding import EVERYTHING, Finding, Findings, PhoneChange
from orchestrator.domain.results import RunResults
from reports.changes.cards import MAX_DETAILS, Places, ordered
from reports.changes.detail import MAX_LINES
from reports.changes.naming import Names

Key = tuple[str, str]
"""Device id, case id."""


def wanted_trials(results: RunResults, found: Findings, limit: int) -> dict[str, list[Key]]:
    """Finding id → series of its phones; of ``limit`` findings at most, SoCs in turn as their pages go."""
    names = Names({case_id: info.case for case_id, info in results.cases.items()})
    per_soc = [own[:MAX_DETAILS] for own in ordered(found, names, Places({}, {}, {})).values()]
    longest = max((len(own) for own in per_soc), default=0)
    turns = [own[i] for i in range(longest) for own in per_soc if i < len(own)]
    return {
        f.finding_id: [(device, f.case_id) for device in _devices(f)]
        for f in turns[:limit]
        if f.case_id != EVERYTHING
    }


def _devices(finding: Finding) -> list[str]:
    """Those that show it most first; those of one chart."""
    if finding.device_id:
        return [finding.device_id]
    return [p.device_id for p in sorted(finding.phones, key=_size)][:MAX_LINES]


def _size(phone: PhoneChange) -> float:
    return -abs(phone.effect) if math.isfinite(phone.effect) else 0.0
