"""Findings and the trials behind them → Changes, for the renderers."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from orchestrator.analysis.words import plural
from orchestrator.domain.case import Case
from orchestrator.domain.finding import EVERYTHING, DeviceNight, Finding, Findings, SeriesRow
from orchestrator.domain.results import RunResults
from reports.changes.cards import MAX_DETAILS, Places, cards, entry, on_page, ordered
from reports.changes.detail import Details
from reports.changes.drifting import by_case, drifting
from reports.changes.evidence import Row
from reports.changes.fleet import common_shift, phone_nights
from reports.changes.method import parameters, sensitivity
from reports.changes.model import Card, Changes, SocChanges, Tally
from reports.changes.naming import Names
from reports.changes.rows import by_importance, first_rows, table_csv, table_data
from reports.changes.words import VERDICTS, readable, spaced

TALLIES = (
    "regressed", "improved", "numerics", "drifting", "inconclusive", "missing", "new", "same", "acknowledged",
)  # fmt: skip
"""As the findings count them; what drifts is the same tonight and counted there, too."""
MAX_WHYS = 5
"""Reasons for no verdict that stand at the top of a page."""


def build_changes(
    results: RunResults,
    found: Findings,
    series: Mapping[str, Sequence[Row]],
    older: Mapping[str, Case],
    result_pages: Mapping[str, str],
    file_names: Mapping[str, str],
    told: frozenset[str] | None = None,
) -> Changes:
    """A page of every SoC that findings, series or phones name.

    Args:
        series: finding id → trials of its case, as the history keeps them; findings without them have
            fewer charts.
        older: case id → case of earlier runs, for what this one does not plan any more.
        result_pages: SoC → page with this run's results.
        file_names: SoC → ``soc-NAME.html``, for all SoCs of ``found``.
        told: findings that nobody has dealt with; None: what is triaged or expected is dealt with.
    """
    pages = {soc: name.replace("soc-", "changes-", 1) for soc, name in file_names.items()}
    phones = {d.device_id: d.name for d in results.devices}
    names = Names(_cases(results, found, older))
    slow = drifting(found)
    places = Places(pages, {}, phones, told, slow)
    per_soc = ordered(found, names, places)
    anchors = {
        f.finding_id: f"f{number}"
        for own in per_soc.values()
        for number, f in enumerate(own[:MAX_DETAILS], 1)
    }
    places = replace(places, anchors=anchors)
    every_card = cards(found, names, places, series)
    rows: dict[str, list[SeriesRow]] = defaultdict(list)
    devices: dict[str, list[DeviceNight]] = defaultdict(list)
    for row in found.series:
        rows[row.soc].append(row)
    for device in found.devices:
        devices[device.soc].append(device)
    details = Details(results, found, series, phones)
    soc_of = _soc_of(found, results)

    def _readable(sentences: Iterable[str]) -> tuple[str, ...]:
        return tuple(readable(text, found.nights, phones) for text in sentences)

    socs: list[SocChanges] = []
    for soc in file_names:
        own = per_soc.get(soc, [])
        drifts = by_case(f for f in own if f.finding_id in slow)
        sorted_rows = by_importance(rows[soc], drifts)
        links = {f.case_id: anchors[f.finding_id] for f in reversed(own) if f.finding_id in anchors}
        tallies = _tallies(sorted_rows, own, len(drifts))
        own_cards = tuple(c for card in every_card if (c := on_page(card, soc, found, series)) is not None)
        shift, last = common_shift(devices[soc], found.nights)
        socs.append(
            SocChanges(
                soc=soc,
                file_name=pages[soc],
                table_file=pages[soc].removesuffix(".html") + ".csv",
                results_file=result_pages.get(soc, ""),
                sentence=_sentence(tallies, own_cards, own, soc),
                tallies=tallies,
                not_judged=_not_judged(sorted_rows),
                not_measured=_readable(s for s in found.not_measured if soc_of(s) in ("", soc)),
                cards=own_cards,
                unconfirmed=tuple(entry(f, names, places) for f in found.unconfirmed if f.soc == soc),
                shift=shift,
                shift_last=last,
                details=tuple(details.of(entry(f, names, places)) for f in own[:MAX_DETAILS]),
                left_out=max(0, len(own) - MAX_DETAILS),
                rows=sorted_rows,
                first_rows=first_rows(sorted_rows, names, links, drifts),
                data=table_data(sorted_rows, names, links, drifts),
                csv=table_csv(sorted_rows, names, drifts),
                kernels=tuple(sorted({names.kernel(r.case_id) for r in sorted_rows} - {""})),
                phones=phone_nights(devices[soc], found.nights, phones),
                sensitivity=sensitivity(sorted_rows),
            )
        )
    counted = {**found.counts, "drifting": len(slow)}
    counts = tuple(Tally(name, counted.get(name, 0)) for name in TALLIES)
    return Changes(
        findings=found,
        sentence=readable(found.sentence, found.nights, phones),
        not_measured=_readable(found.not_measured),
        tallies=counts,
        socs=tuple(socs),
        cards=every_card,
        names=phones,
        labels=names.labels,
        shared=names.shared,
        parameters=parameters(found.method),
    )


def _cases(results: RunResults, found: Findings, older: Mapping[str, Case]) -> dict[str, Case]:
    """Of what the findings speak of; probes and unplanned cases would only make names longer."""
    known = {**older, **{i: info.case for i, info in results.cases.items()}}
    named = {r.case_id for r in found.series} | {f.case_id for f in (*found.findings, *found.unconfirmed)}
    return {i: case for i, case in known.items() if i in named}


def _soc_of(found: Findings, results: RunResults) -> Callable[[str], str]:
    """Sentence → SoC of the phone that it starts with; empty: of none, or of one whose SoC nobody knows."""
    socs = {d.device_id: d.soc.name for d in results.devices} | {d.device_id: d.soc for d in found.devices}
    return lambda sentence: next((soc for i, soc in socs.items() if sentence.startswith(f"{i}: ")), "")


def _not_judged(rows: Sequence[SeriesRow]) -> tuple[str, ...]:
    """``4 variants inconclusive: 5 of 7 nights that a baseline needs``, the most frequent reason first."""
    by = Counter((r.verdict, r.why) for r in rows if r.verdict in ("inconclusive", "missing"))
    told = [
        f"{plural(n, 'variant')} {verdict}" + (f": {spaced(why)}" if why else "")
        for (verdict, why), n in by.most_common(MAX_WHYS)
    ]
    left = sum(by.values()) - sum(n for _, n in by.most_common(MAX_WHYS))
    return (*told, *([f"{plural(left, 'variant')} for other reasons, which the table names"] if left else []))


def socs_of(found: Findings) -> tuple[str, ...]:
    """In the order of their first series, finding or phone."""
    named = [r.soc for r in found.series] + [f.soc for f in found.findings] + [d.soc for d in found.devices]
    return tuple(dict.fromkeys(named))


def _tallies(rows: Sequence[SeriesRow], own: Sequence[Finding], drifts: int) -> tuple[Tally, ...]:
    by = Counter(r.verdict for r in rows)
    numerics = sum(any(f != "improved" for f in r.flags) for r in rows)
    acknowledged = sum(f.triage is not None and f.triage.state == "acknowledged" for f in own)
    numbers = {name: by[name] for name in VERDICTS}
    numbers |= {"numerics": numerics, "drifting": drifts, "acknowledged": acknowledged}
    return tuple(Tally(name, numbers[name]) for name in TALLIES)


def _sentence(tallies: Sequence[Tally], cards: Sequence[Card], own: Sequence[Finding], soc: str) -> str:
    """The worst and the best news of one SoC; it claims calm only over what could be judged.

    Args:
        cards: the SoC's. What moved as a whole is in no variant's verdict and is told in the card's words.
        own: the SoC's findings.
    """
    n = {t.name: t.number for t in tallies}
    rows = sum(n[name] for name in VERDICTS)
    whole = [card.sentence for card in cards if card.whole]
    alone = sum(bool(f.device_id) and f.case_id != EVERYTHING for f in own)
    total = plural(rows, "variant")
    if not rows:
        return f"{soc}: {'; '.join(['no variant was judged', *whole])}."
    news = [
        text
        for count, text in (
            (n["regressed"], f"{n['regressed']} regressed"),
            (n["improved"], f"{n['improved']} improved"),
            (n["numerics"], f"{n['numerics']} with other numerics"),
            (n["drifting"], f"{n['drifting']} drifting slowly"),
            (alone, f"{alone} on one phone alone"),
        )
        if count
    ]
    judged = n["regressed"] + n["improved"] + n["same"]
    unsure = [f"{n[k]} {k}" for k in ("inconclusive", "missing", "new") if n[k]]
    rest = f"{judged} of {total} could be judged" + (f" ({', '.join(unsure)})" if unsure else "")
    if not judged and not news:
        rest = f"nothing could be judged: {', '.join(unsure)} of {total}"
    elif not news and not cards:
        news = ["no change found"]
    return f"{soc}: {'; '.join([*([', '.join(news)] if news else []), *whole, rest])}."
