"""Groups of findings with one cause, on one SoC or several, and each finding in one line."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from orchestrator.analysis.words import plural
from orchestrator.domain.finding import EVERYTHING, Finding, Findings, Group, SeriesRow
from reports.changes.evidence import Row, nights, nmse_history, phones
from reports.changes.loose import loose_groups
from reports.changes.model import Card, Entry, Part, Spark
from reports.changes.naming import Names
from reports.changes.second import confirmed
from reports.changes.words import (
    cause_words,
    change,
    error_change,
    history_words,
    long_night,
    night,
    readable,
)
from reports.svg.history import LEAST_DECADES
from reports.svg.sparkline import sparkline

MAX_DETAILS = 40
"""Findings of a page with all their charts; further ones stand in groups, table and findings.json."""


_TITLE = re.compile(r"(?<=\S) since \d{1,2} [A-Z][a-z]{2}(?: \d{4})?(?:: .*)?$")
"""The part of a group's sentence that its card says elsewhere: since when, how many, how much, and why."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a card's links lead."""

    pages: Mapping[str, str]
    """SoC → file name of its page."""
    anchors: Mapping[str, str]
    """Finding id → anchor of its detail."""
    phones: Mapping[str, str]
    """Device id → its name."""
    told: frozenset[str] | None = None
    """Ids of findings that nobody has dealt with; None: what is triaged or expected is dealt with."""
    drifting: frozenset[str] = frozenset()
    """Ids of findings that are a slow drift."""

    def word(self, finding: Finding) -> str:
        return "drifting" if finding.finding_id in self.drifting else finding.what

    def settled(self, finding: Finding) -> bool:
        if self.told is not None:
            return finding.finding_id not in self.told
        return bool(finding.expected) or (finding.triage is not None and finding.triage.state != "new")


def every_group(
    found: Findings, names: Names, phones: Mapping[str, str]
) -> list[tuple[Group, list[Finding]]]:
    """Each finding once, in the first group that has it; those in none are put together here.

    A group that has none from the start is a SoC whose variants moved together.
    """
    by_id = {f.finding_id: f for f in found.findings}
    used: set[str] = set()
    made: list[tuple[Group, list[Finding]]] = []
    for group in found.groups:
        own = [by_id[i] for i in dict.fromkeys(group.findings) if i in by_id and i not in used]
        used.update(f.finding_id for f in own)
        if own or not group.findings:
            made.append((group, own))
    alone = [f for f in found.findings if f.finding_id not in used]
    return [*made, *loose_groups(alone, names, phones)]


def cards(
    found: Findings, names: Names, places: Places, series: Mapping[str, Sequence[Row]]
) -> tuple[Card, ...]:
    """What nobody decided about first, then by number of findings and size; slower and faster alike."""
    history = {(r.soc, r.case_id): r for r in found.series}
    made = [
        _card(found, group, own, names, places, history, series)
        for group, own in every_group(found, names, places.phones)
    ]
    made.sort(key=lambda card: (card.settled, -_weight(card), -max(map(_size_of, card.entries), default=0.0)))
    return tuple(replace(card, anchor=f"g{number}") for number, card in enumerate(made, 1))


def on_page(card: Card, soc: str, found: Findings, series: Mapping[str, Sequence[Row]]) -> Card | None:
    """The card as the page of one SoC shows it: its findings, the other SoCs as a list; None: none there."""
    own = tuple(e for e in card.entries if e.finding.soc == soc)
    if not own:
        return card if not card.entries and soc in (card.group.soc, *card.group.socs) else None
    history = {(r.soc, r.case_id): r for r in found.series if r.soc == soc}
    return replace(
        card,
        share=f"{plural(len(own), 'finding')} here" if card.parts else card.share,
        change=_said(card.group, [e.finding for e in own]),
        entries=own,
        parts=tuple(p for p in card.parts if p.soc != soc),
        spark=card.spark if card.whole else _drawn([e.finding for e in own], found, history, series),
        confirmed=confirmed([e.finding for e in own]),
    )


def entry(finding: Finding, names: Names, places: Places) -> Entry:
    effect = change(finding.effect) if finding.kind == "speed" else error_change(finding.effect)
    called = names.of(finding.case_id)
    return Entry(
        finding=finding,
        label=called.short,
        full=called.full,
        word=places.word(finding),
        change=effect,
        page=places.pages.get(finding.soc, ""),
        anchor=places.anchors.get(finding.finding_id, ""),
    )


def ordered(found: Findings, names: Names, places: Places) -> dict[str, list[Finding]]:
    """SoC → its findings by what to read first: groups in turn, no large one hides another cause."""
    queues: dict[str, list[list[Finding]]] = defaultdict(list)
    for _, own in every_group(found, names, places.phones):
        per_soc: dict[str, list[Finding]] = defaultdict(list)
        for finding in own:
            per_soc[finding.soc].append(finding)
        for soc, findings in per_soc.items():
            queues[soc].append(findings)
    made: dict[str, list[Finding]] = {}
    for soc, groups in queues.items():
        groups.sort(key=lambda own: (places.settled(own[0]), -_size(own[0])))
        longest = max(len(own) for own in groups)
        made[soc] = [own[i] for i in range(longest) for own in groups if i < len(own)]
    return made


def _card(
    found: Findings,
    group: Group,
    own: Sequence[Finding],
    names: Names,
    places: Places,
    history: Mapping[tuple[str, str], SeriesRow],
    series: Mapping[str, Sequence[Row]],
) -> Card:
    whole = not own or own[0].case_id == EVERYTHING
    since = group.since or min((f.since for f in own if f.since), default="")
    sentence = _sentence(group.sentence, found.nights, names, places.phones)
    return Card(
        group=group,
        word=places.word(own[0]) if own else group.what,
        title=_TITLE.sub("", sentence),
        share=_share(group, own, whole=whole),
        sentence=sentence,
        change=_said(group, own),
        entries=tuple(entry(f, names, places) for f in own),
        parts=_parts(group, own, places),
        spark=_together(group, own, found) if whole else _drawn(own, found, history, series),
        settled=bool(own) and all(places.settled(f) for f in own),
        whole=whole,
        cause=cause_words(group.cause, group.changed),
        since=night(since) if since else "",
        since_full=f"{long_night(since)}, run {since}" if since else "",
        confirmed=confirmed(own),
    )


def _parts(group: Group, own: Sequence[Finding], places: Places) -> tuple[Part, ...]:
    """By SoC, the largest effect first."""
    per_soc: dict[str, list[Finding]] = defaultdict(list)
    for finding in own:
        per_soc[finding.soc].append(finding)
    parts = [
        Part(soc, places.pages.get(soc, ""), _said(group, findings), len(findings))
        for soc, findings in sorted(per_soc.items(), key=lambda item: -_size(item[1][0]))
    ]
    return tuple(parts) if len(parts) > 1 else ()


def _sentence(text: str, runs: Sequence[str], names: Names, phones: Mapping[str, str]) -> str:
    """Readable, and single cases by their name."""
    cased = re.sub(r"\bcase=([0-9a-f]{8,64})\b", lambda m: names.short(m[1]), text)
    return readable(cased, runs, phones)


def _share(group: Group, own: Sequence[Finding], *, whole: bool) -> str:
    if whole:
        return ""
    if group.named > 1:
        return f"{len(own)} of {plural(group.named, 'variant')}"
    return plural(len(own), "finding")


def _said(group: Group, own: Sequence[Finding]) -> str:
    effects = [f.effect for f in own if f.kind == "speed" and math.isfinite(f.effect)]
    if effects:
        return change(median(effects))
    ratios = [f.effect for f in own if f.kind == "numerics" and math.isfinite(f.effect) and f.effect]
    if ratios:
        return error_change(median(ratios))
    return "" if own or not group.effect else change(group.effect)


def _drawn(
    own: Sequence[Finding],
    found: Findings,
    history: Mapping[tuple[str, str], SeriesRow],
    series: Mapping[str, Sequence[Row]],
) -> Spark | None:
    """Latency of findings of speed; NMSE of the others, where their trials are at hand."""
    if own[0].kind == "speed":
        rows = [history[f.soc, f.case_id].history for f in own if (f.soc, f.case_id) in history]
        return _spark(rows, found.nights, "variant")
    errors: list[list[float]] = []
    for finding in own:
        seen = nights(series.get(finding.finding_id, ()))
        errors += [nmse_history(finding, seen, found.nights, device) for device in phones(seen)]
    mean = mean_history([e for e in errors if any(map(math.isfinite, e))] or [[]])
    known = [v for v in mean if math.isfinite(v)]
    if not known:
        return None
    low, high, last = (f"×{10 ** min(v, 30.0):.3g}" for v in (min(known), max(known), known[-1]))
    words = f"NMSE against its baseline, {low} to {high}, last {last}"
    picture = sparkline(mean, words, stretch=True, floor=LEAST_DECADES / 2, ceiling=math.inf)
    return Spark(picture, night(found.nights[0]), night(found.nights[-1]), "NMSE")


def _together(group: Group, own: Sequence[Finding], found: Findings) -> Spark | None:
    """What all variants of the phones did together."""
    only = {f.device_id for f in own} - {""}
    in_soc = [d for d in found.devices if d.soc in (group.soc, *group.socs)]
    return _spark([d.shift for d in in_soc if not only or d.device_id in only], found.nights, "phone")


def _spark(every: Iterable[Sequence[float]], runs: Sequence[str], what: str) -> Spark | None:
    """Mean over variants or phones, night by night."""
    histories = [h for h in every if any(math.isfinite(v) for v in h)]
    if not histories:
        return None
    mean = mean_history(histories)
    words = f"mean of {plural(len(histories), what)}: {history_words(mean)}"
    axis = runs[-len(mean) :] or [""]
    return Spark(sparkline(mean, words, stretch=True), night(axis[0]), night(axis[-1]), "latency")


def mean_history(histories: Sequence[Sequence[float]]) -> list[float]:
    """Aligned at the last night; NaN where none has a number."""
    longest = max(len(h) for h in histories)
    padded = [[math.nan] * (longest - len(h)) + list(h) for h in histories]
    return [
        fmean(known) if (known := [v for v in values if math.isfinite(v)]) else math.nan
        for values in zip(*padded, strict=True)
    ]


def _size(finding: Finding) -> float:
    return abs(finding.effect) if math.isfinite(finding.effect) else 0.0


def _size_of(entry: Entry) -> float:
    return _size(entry.finding)


def _weight(card: Card) -> int:
    """Findings; what a whole SoC did together comes first."""
    whole = all(e.finding.case_id == EVERYTHING and not e.finding.device_id for e in card.entries)
    return 1_000_000 if whole else len(card.entries)
