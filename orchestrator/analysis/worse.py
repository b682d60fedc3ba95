"""What got worse against the history, and nobody has dealt with: what ``--fail-on regressed`` fails on."""

from dataclasses import dataclass
from datetime import date

from orchestrator.analysis.alerts import alerts
from orchestrator.analysis.words import plural
from orchestrator.domain.finding import Finding, Findings


@dataclass(frozen=True, slots=True)
class Worse:
    findings: tuple[Finding, ...] = ()
    """Slower on a SoC, or less exact; the largest first as in findings.json."""

    def __bool__(self) -> bool:
        return bool(self.findings)

    @property
    def words(self) -> tuple[str, ...]:
        """``3 alerts of speed against the history``, ``1 of numerics``; empty where nothing got worse."""
        slower = sum(f.kind == "speed" for f in self.findings)
        numerics = len({(f.soc, f.case_id) for f in self.findings if f.kind == "numerics"})
        told = [f"{plural(slower, 'alert')} of speed against the history"] if slower else []
        told += [f"{plural(numerics, 'alert')} of numerics"] if numerics else []
        return tuple(told)


def worse(findings: Findings | None, today: date) -> Worse:
    """Of alerts, those that are about a kernel: one phone alone is a matter of that phone's health."""
    if findings is None:
        return Worse()
    return Worse(tuple(f for f in alerts(findings, today) if is_worse(f)))


def is_worse(finding: Finding) -> bool:
    """Other bits from other code are what an edit of a shader brings; from the same code they are worse."""
    match finding.what:
        case "improved":
            return False
        case "hash_changed":
            return not finding.device_id and finding.cause != "code"
        case "regressed" | "nmse_doubled" | "limit_crossed" | "nondeterministic":
            return not finding.device_id
