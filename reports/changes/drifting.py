"""Which findings are a slow drift: the weekly scan's, of variants that the night itself finds the same."""

from collections.abc import Iterable

from orchestrator.domain.finding import Finding, Findings
from reports.changes.words import change, night


def drifting(found: Findings) -> frozenset[str]:
    """Ids. Every other finding of a variant's speed on a SoC has a row that regressed or improved."""
    same = {(r.soc, r.case_id) for r in found.series if r.verdict == "same"}
    return frozenset(f.finding_id for f in found.findings if _of_soc(f) and (f.soc, f.case_id) in same)


def _of_soc(finding: Finding) -> bool:
    return finding.kind == "speed" and not finding.device_id


def by_case(found: Iterable[Finding]) -> dict[str, str]:
    """Case id → how far it is by now: ``2.4 % slower since 13 Nov``."""
    return {f.case_id: change(f.effect) + (f" since {night(f.since)}" if f.since else "") for f in found}
