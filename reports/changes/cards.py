"""Groups of findings with one cause, and each finding in one line."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median

from markupsafe import Markup

from orchestrator.domain.finding import Finding, Findings, Group, SeriesRow
from reports.changes.model import Card, Entry
from reports.changes.words import change, error_change, history_words, name
from reports.svg.sparkline import sparkline

MAX_DETAILS = 40
"""Findings of a page with all their charts; further ones stand in groups, table and findings.json."""


def cards(
    found: Findings, labels: Mapping[str, str], pages: Mapping[str, str], anchors: Mapping[str, str]
) -> tuple[Card, ...]:
    """Every finding once: groups first seen first, then findings in no group by themselves.

    Args:
        pages: SoC → file name of its page.
        anchors: finding id → anchor of its detail.
    """
    by_id = {f.finding_id: f for f in found.findings}
    history: dict[tuple[str, str], SeriesRow] = {(r.soc, r.case_id): r for r in found.series}
    made: list[Card] = []
    used: set[str] = set()
    for group in found.groups:
        own = [by_id[i] for i in dict.fromkeys(group.findings) if i in by_id and i not in used]
        used.update(f.finding_id for f in own)
        if own:
            made.append(_card(group, own, labels, pages, anchors, history))
    for finding in found.findings:
        if finding.finding_id not in used:
            sentence = f"{labels.get(finding.case_id, finding.case_id)} on {finding.device_id or finding.soc}"
            alone = Group(
                finding.finding_id,
                sentence,
                finding.cause,
                finding.what,
                finding.soc,
                findings=[finding.finding_id],
            )
            made.append(_card(alone, [finding], labels, pages, anchors, history))
    return tuple(sorted(made, key=_order))


def entry(
    finding: Finding, labels: Mapping[str, str], pages: Mapping[str, str], anchors: Mapping[str, str]
) -> Entry:
    effect = change(finding.effect) if finding.kind == "speed" else error_change(finding.effect)
    return Entry(
        finding=finding,
        label=labels.get(finding.case_id, finding.case_id),
        change=effect,
        page=pages.get(finding.soc, ""),
        anchor=anchors.get(finding.finding_id, ""),
    )


def ordered(found: Findings) -> dict[str, list[Finding]]:
    """SoC → its findings by what to read first: groups in turn, no large one hides another cause."""
    by_id = {f.finding_id: f for f in found.findings}
    queues: dict[str, list[list[Finding]]] = defaultdict(list)
    used: set[str] = set()
    for group in found.groups:
        own = [by_id[i] for i in dict.fromkeys(group.findings) if i in by_id and i not in used]
        used.update(f.finding_id for f in own)
        if own:
            queues[own[0].soc].append(own)
    for finding in found.findings:
        if finding.finding_id not in used:
            queues[finding.soc].append([finding])
    made: dict[str, list[Finding]] = {}
    for soc, groups in queues.items():
        groups.sort(key=lambda own: (_settled(own[0]), -_size(own[0])))
        longest = max(len(own) for own in groups)
        made[soc] = [own[i] for i in range(longest) for own in groups if i < len(own)]
    return made


def _card(
    group: Group,
    own: Sequence[Finding],
    labels: Mapping[str, str],
    pages: Mapping[str, str],
    anchors: Mapping[str, str],
    history: Mapping[tuple[str, str], SeriesRow],
) -> Card:
    effects = [f.effect for f in own if f.kind == "speed" and math.isfinite(f.effect)]
    said = change(median(effects)) if effects else name(group.what)
    rows = [history[f.soc, f.case_id] for f in own if (f.soc, f.case_id) in history]
    return Card(group, said, tuple(entry(f, labels, pages, anchors) for f in own), _spark(rows))


def _spark(rows: Iterable[SeriesRow]) -> Markup:
    """Mean over the group's cases, night by night."""
    histories = [r.history for r in rows if r.history]
    if not histories:
        return Markup("")
    longest = max(len(h) for h in histories)
    padded = [[math.nan] * (longest - len(h)) + list(h) for h in histories]
    mean = [
        fmean(known) if (known := [v for v in night if math.isfinite(v)]) else math.nan
        for night in zip(*padded, strict=True)
    ]
    return sparkline(mean, f"mean of {len(histories)}: {history_words(mean)}")


def _order(card: Card) -> tuple[bool, int, float]:
    """What nobody decided about first, then by size; slower and faster alike."""
    return card.settled, -len(card.entries), -_size(card.entries[0].finding)


def _size(finding: Finding) -> float:
    return abs(finding.effect) if math.isfinite(finding.effect) else 0.0


def _settled(finding: Finding) -> bool:
    return finding.triage is not None and finding.triage.state != "new"
