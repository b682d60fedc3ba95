"""A decision about one finding or several: what a file of the triage folder holds."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import log1p

from orchestrator.analysis.words import faster_or_slower
from orchestrator.domain.finding import Finding, Triage, TriageState
from orchestrator.domain.moment import parse_time

NEVER = "never"
EXPIRING: tuple[TriageState, ...] = ("acknowledged", "noise")
"""A person says until when; the others end by what is measured."""
_EFFECT = re.compile(r"(\d{1,3}(?:\.\d{1,4})?)\s%\s(slower|faster)")


@dataclass(frozen=True, slots=True)
class Subject:
    """A finding as a reviewer of the file reads it, and what an accepted shift has to know of it."""

    finding_id: str
    soc: str
    what: str
    """As ``Finding.what``."""
    case_id: str
    """Or ``EVERYTHING``."""
    case: str = ""
    """Label."""
    device: str = ""
    """Of a finding of one phone."""
    effect: str = ""
    """``6.1 % slower``"""
    since: str = ""
    """First run that shows it."""
    line: int = 0
    """In its file; 0: not read from one."""


@dataclass(frozen=True, slots=True)
class Decision:
    state: TriageState
    owner: str
    about: str
    """One sentence: of the group, or of the finding."""
    run: str
    """That it was decided about: the last one that is known to show its findings."""
    decided: str
    """UTC, ISO 8601."""
    subjects: tuple[Subject, ...]
    note: str = ""
    link: str = ""
    expires: str = ""
    """Date; empty: never."""
    file: str = ""
    """Name of its file; empty: it has none yet."""

    def triage(self, subject: Subject, run_id: str, started_at: str) -> Triage:
        """As a finding of a run carries it. What was fixed is back in a run that is later than the one it was
        decided about, and that started after the decision.

        Args:
            subject: the finding, as it was when it was decided about.
        """
        later = run_id > self.run and moment(started_at) > moment(self.decided)
        again = self.state == "fixed" and later
        return Triage(
            self.state,
            self.owner,
            self.note,
            self.link,
            self.expires,
            self.decided,
            again,
            effect=_effect(subject.effect),
        )

    def without(self, finding_ids: Iterable[str]) -> "Decision":
        gone = set(finding_ids)
        return replace(self, subjects=tuple(s for s in self.subjects if s.finding_id not in gone))


def subject_of(finding: Finding, label: str) -> Subject:
    return Subject(
        finding_id=finding.finding_id,
        soc=finding.soc,
        what=finding.what,
        case_id=finding.case_id,
        case=label,
        device=finding.device_id,
        effect=faster_or_slower(finding.effect) if finding.kind == "speed" else finding.detail,
        since=finding.since,
    )


def _effect(text: str) -> float:
    """Log ratio of latency; 0 for other words, such as those of numerics."""
    found = _EFFECT.fullmatch(text)
    return log1p(float(found[1]) / (100 if found[2] == "slower" else -100)) if found else 0.0


def moment(text: str) -> datetime:
    """UTC where the text does not say; the beginning of time where it says nothing."""
    return parse_time(text) if text else datetime.min.replace(tzinfo=UTC)
