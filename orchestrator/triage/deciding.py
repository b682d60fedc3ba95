"""What a person names, found: findings and groups of a run, and what was decided about earlier ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.domain.errors import UsageError
from orchestrator.domain.finding import Finding, Findings
from orchestrator.planning.suggest import did_you_mean, shown
from orchestrator.triage.decision import Decision, Subject, subject_of
from orchestrator.triage.folder import by_finding

SHORTEST = 4
"""Characters of an id that are enough where no other one begins with them."""
_SENTENCES = 3


@dataclass(frozen=True, slots=True)
class Named:
    """What one decision is to be about."""

    subjects: tuple[Subject, ...]
    about: str


def named(
    names: Sequence[str], findings: Findings, labels: Mapping[str, str], decided: Sequence[Decision]
) -> Named:
    """
    Args:
        names: ids of findings and groups, or their beginnings.
        labels: case id → label.

    Raises:
        UsageError: a name that is no id, or of several.
    """
    found = {f.finding_id: f for f in findings.findings}
    groups = {g.group_id: g for g in findings.groups}
    known = by_finding(decided)
    subjects: dict[str, Subject] = {}
    sentences: list[str] = []
    for name in names:
        which = _one(name, [*found, *groups, *known], findings.run_id)
        if which in groups:
            inside = [found[i] for i in groups[which].findings if i in found]
            of_group = [subject_of(f, labels.get(f.case_id, "")) for f in inside]
            sentences.append(groups[which].sentence)
        elif which in found:
            of_group = [subject_of(found[which], labels.get(found[which].case_id, ""))]
            sentences.append(_sentence(found[which]))
        else:
            decision, subject = known[which]
            of_group = [subject]
            sentences.append(decision.about)
        subjects |= {s.finding_id: s for s in of_group}
    return Named(tuple(subjects.values()), _joined(sentences))


def _one(name: str, ids: Iterable[str], run_id: str) -> str:
    there = dict.fromkeys(ids)
    if name in there:
        return name
    begin = [i for i in there if i.startswith(name)] if len(name) >= SHORTEST else []
    if len(begin) == 1:
        return begin[0]
    if begin:
        raise UsageError(f"{len(begin)} ids begin with {shown(name)}: {', '.join(begin[:4])}. Give one")
    raise UsageError(
        f"{shown(name)} is no finding and no group of run {run_id}, and nothing was decided about it."
        f"{did_you_mean(name, there)} `tilefarm triage --all` lists them"
    )


def _sentence(finding: Finding) -> str:
    where = f"{finding.soc}, phone {finding.device_id} alone" if finding.device_id else finding.soc
    return f"{where}: {finding.detail or finding.what}"


def _joined(sentences: Sequence[str]) -> str:
    more = len(sentences) - _SENTENCES
    told = "; ".join(dict.fromkeys(sentences[:_SENTENCES]))
    return f"{told}; and {more} more" if more > 0 else told
