"""The suite "changes" of junit.xml: a night against its history, one test case a cause.

Worse and dealt with by nobody → ``failure``; improved, acknowledged, expected → passes, with words in
``system-out``; what could not be judged → ``skipped`` with the reason.
"""

import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Mapping, Sequence

from orchestrator.analysis.words import plural
from orchestrator.domain.finding import SeriesRow
from reports.changes.model import Card, Entry
from reports.changes.words import name
from reports.machines.causes import cause_of
from reports.machines.xunit import Suite, child, printed
from reports.model import ReportModel

MAX_CARDS = 500
MAX_LISTED = 20
"""Findings or variants that a test case names."""
MAX_REASONS = 100
"""Reasons for which variants of a SoC were not judged."""
MAX_TEXT = 8_000


def changes_suite(model: ReportModel) -> Suite | None:
    """None without findings."""
    changes = model.changes
    if changes is None:
        return None
    suite = Suite("changes", {"against": f"{max(0, len(changes.findings.nights) - 1)} nights"})
    for sentence in changes.not_measured[:MAX_REASONS]:
        child(suite.case(sentence, "not measured"), "skipped", f"not measured: {sentence}")
    failing = frozenset(f.finding_id for f in model.worse.findings)
    for card in changes.cards[:MAX_CARDS]:
        _card(suite.case(_card_name(card), name(card.group.what)), card, failing)
    _rest(suite, changes.cards[MAX_CARDS:], failing)
    for soc in changes.socs:
        _judged(suite, soc.soc, soc.rows, soc.sentence, model.labels)
    return suite


def _card_name(card: Card) -> str:
    """The same every night: a sentence would have other numbers tomorrow."""
    group = card.group
    socs = [group.soc] if group.soc else group.socs
    where = socs[0] if len(socs) == 1 else plural(len(socs), "SoC")
    terms = [group.kernel, f"{group.axis}={group.value}" if group.axis else ""]
    what = " ".join(t for t in terms if t) or (card.entries[0].label if card.entries else "all variants")
    return f"{name(group.what)}: {what} on {where} {group.group_id}"


def _card(case: ET.Element, card: Card, failing: frozenset[str]) -> None:
    bad = [e for e in card.entries if e.finding.finding_id in failing]
    text = "\n".join(
        [
            f"cause: {cause_of(card)}",
            f"since: {card.since_full or 'not known'}",
            *([f"second look: {card.confirmed}"] if card.confirmed else []),
            *_lines(card.entries, failing),
        ]
    )
    if bad:
        child(case, "failure", card.sentence, card.group.what, text)
    else:
        printed(case, "system-out", f"{card.sentence}\n{text}", MAX_TEXT)


def _lines(entries: Sequence[Entry], failing: frozenset[str]) -> list[str]:
    """Those that fail first."""
    ordered = sorted(entries, key=lambda e: e.finding.finding_id not in failing)
    lines = [
        f"{e.finding.soc}: {e.label}: {e.change or name(e.finding.what)} ({e.finding.finding_id})"
        + (f" {e.finding.triage.told or e.finding.triage.state}" if e.finding.triage is not None else "")
        for e in ordered[:MAX_LISTED]
    ]
    more = len(entries) - MAX_LISTED
    return lines + ([f"and {more} more in findings.json"] if more > 0 else [])


def _rest(suite: Suite, cards: Sequence[Card], failing: frozenset[str]) -> None:
    """Beyond the number of cards: in one test case, which fails if one of them would."""
    if not cards:
        return
    case = suite.case("further causes", "more")
    bad = sum(any(e.finding.finding_id in failing for e in card.entries) for card in cards)
    said = f"{plural(len(cards), 'smaller group')} more, {bad} of them worse: see findings.json"
    if bad:
        child(case, "failure", said, "regressed")
    else:
        printed(case, "system-out", said, MAX_TEXT)


def _judged(
    suite: Suite, soc: str, rows: Sequence[SeriesRow], sentence: str, labels: Mapping[str, str]
) -> None:
    """A test case that passes with what was judged, and one that is skipped a reason why others were not."""
    unsure: dict[tuple[str, str], list[SeriesRow]] = defaultdict(list)
    for row in rows:
        if row.verdict in ("inconclusive", "missing", "new"):
            unsure[row.verdict, row.why].append(row)
    if len(rows) > sum(map(len, unsure.values())):
        printed(suite.case(f"variants judged on {soc}", "judged"), "system-out", sentence, MAX_TEXT)
    for (verdict, why), own in list(unsure.items())[:MAX_REASONS]:
        case = suite.case(f"{verdict} on {soc}: {why or 'no reason given'}", verdict)
        child(case, "skipped", f"{plural(len(own), 'variant')} {verdict}: {why}; {_named(own, labels)}")


def _named(rows: Sequence[SeriesRow], labels: Mapping[str, str]) -> str:
    shown = ", ".join(labels.get(r.case_id, r.case_id) for r in rows[:3])
    return f"{shown} and {len(rows) - 3} more" if len(rows) > 3 else shown
