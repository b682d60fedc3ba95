"""A night against its history in Markdown: what was not measured, what got worse, what improved."""

import math
from collections.abc import Sequence

from orchestrator.analysis.words import plural
from orchestrator.domain.finding import Finding
from reports.changes.model import Card, Changes
from reports.changes.second import second_looks
from reports.changes.words import name, signed
from reports.machines.causes import cause_of
from reports.machines.marked import code, link, plain

MAX_CARDS = 20
MAX_LISTED = 20
MAX_TEXT = 600
"""Characters of a sentence."""
HEAD = [
    "| what | where | change | since | cause | second look | report |",
    "| --- | --- | --- | --- | --- | --- | --- |",
]


def tally_lines(changes: Changes) -> list[str]:
    names = [t.name for t in changes.tallies]
    return [
        "",
        "| " + " | ".join(names) + " |",
        "|" + " ---: |" * len(names),
        "| " + " | ".join(str(t.number) for t in changes.tallies) + " |",
    ]


def not_measured_lines(changes: Changes) -> list[str]:
    """Missed nights, missing phones, and how many variants of which SoC have no verdict."""
    said = [*changes.not_measured]
    for soc in changes.socs:
        unsure = [f"{soc.tally(k)} {k}" for k in ("inconclusive", "missing", "new") if soc.tally(k)]
        said += [f"{soc.soc}: {', '.join(unsure)}"] if unsure else []
    if not said:
        return []
    lines = ["", "**Not measured, or not judged**", ""]
    lines += [f"- {plain(s, MAX_TEXT)}" for s in said[:MAX_LISTED]]
    return lines + ([f"- and {len(said) - MAX_LISTED} more"] if len(said) > MAX_LISTED else [])


def cause_lines(changes: Changes, base: str) -> list[str]:
    """Groups by cause; improvements in a table like that of what got worse.

    Args:
        base: URL of the run's folder, or empty.
    """
    open_cards = [c for c in changes.cards if not c.settled]
    better = [c for c in open_cards if c.group.what == "improved"]
    worse = [c for c in open_cards if c.group.what != "improved"]
    lines = _table("▲ Got worse, or computes other bits", worse, changes, base)
    lines += _table("▼ Improved", better, changes, base)
    settled = sum(len(c.entries) for c in changes.cards if c.settled)
    if settled:
        lines += ["", f"{plural(settled, 'finding')} more that somebody decided about: in the report."]
    if worse or better:
        lines += ["", "In brackets: the 95 % interval of one variant, the range over several."]
    return lines


def _table(title: str, cards: Sequence[Card], changes: Changes, base: str) -> list[str]:
    if not cards:
        return []
    number = sum(len(c.entries) for c in cards)
    head = f"**{title}: {plural(number, 'finding')}, {plural(len(cards), 'cause')}**"
    lines = ["", head, "", *HEAD, *(_row(c, changes, base) for c in cards[:MAX_CARDS])]
    return lines + (
        ["", f"and {plural(len(cards) - MAX_CARDS, 'cause')} more"] if len(cards) > MAX_CARDS else []
    )


def _row(card: Card, changes: Changes, base: str) -> str:
    group = card.group
    socs = [group.soc] if group.soc else list(group.socs)
    pages = {soc.soc: soc.file_name for soc in changes.socs}
    shown = [link(soc, base, pages[soc], card.anchor) for soc in socs[:3] if soc in pages]
    changed = f": {group.changed}" if group.changed and group.changed != group.cause else ""
    cells = [
        f"{plain(name(group.what))}: {code(_what(card), MAX_TEXT)}",
        ", ".join(code(s) for s in socs[:5]) + (f" and {len(socs) - 5} more" if len(socs) > 5 else ""),
        plain(_effect(card)),
        plain(card.since) or "–",
        plain(f"{cause_of(card)}{changed}", MAX_TEXT),
        plain(second_looks([e.finding for e in card.entries]), MAX_TEXT),
        " ".join(shown) or "–",
    ]
    return "| " + " | ".join(cells) + " |"


def _what(card: Card) -> str:
    """The terms that name its variants, or the one variant."""
    group = card.group
    if len(card.entries) == 1:
        return card.entries[0].label
    terms, _, where = card.sentence.partition(" on ")
    if not card.entries or not where:
        terms = " ".join(t for t in (group.kernel, f"{group.axis}={group.value}" if group.axis else "") if t)
    number = f"{len(card.entries)} of {group.named}" if group.named else str(len(card.entries))
    return f"{terms} ({number})" if card.entries and terms else "all variants together"


def _effect(card: Card) -> str:
    speed = [e.finding for e in card.entries if e.finding.kind == "speed" and math.isfinite(e.finding.effect)]
    if len(speed) == 1 and _has_interval(speed[0]):
        return f"{card.change} ({signed(speed[0].low)} to {signed(speed[0].high)})"
    if len(speed) > 1:
        ends = sorted(f.effect for f in speed)
        return f"{card.change} ({signed(ends[0])} to {signed(ends[-1])})"
    return card.change or name(card.group.what)


def _has_interval(finding: Finding) -> bool:
    return math.isfinite(finding.low) and math.isfinite(finding.high)
