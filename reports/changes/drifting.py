"""Which findings are a slow drift: the weekly scan's, of variants that the night itself finds the same."""

from orchestrator.domain.finding import Finding, Findings


def drifting(found: Findings) -> frozenset[str]:
    """Ids. Every other finding of a variant's speed on a SoC has a row that regressed or improved."""
    same = {(r.soc, r.case_id) for r in found.series if r.verdict == "same"}
    return frozenset(f.finding_id for f in found.findings if _of_soc(f) and (f.soc, f.case_id) in same)


def _of_soc(finding: Finding) -> bool:
    return finding.kind == "speed" and not finding.device_id
