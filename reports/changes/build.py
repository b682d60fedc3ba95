"""Findings and the trials behind them → Changes, for the renderers."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from orchestrator.domain.finding import DeviceNight, Finding, Findings, SeriesRow
from orchestrator.domain.results import RunResults
from reports.changes.cards import MAX_DETAILS, cards, entry, ordered
from reports.changes.detail import Details
from reports.changes.evidence import Row
from reports.changes.fleet import phone_nights, sensitivity
from reports.changes.model import Changes, SocChanges, Tally
from reports.changes.rows import by_importance, first_rows, table_csv, table_data
from reports.changes.words import VERDICTS, plural

TALLIES = ("regressed", "improved", "numerics", "inconclusive", "missing", "new", "same", "acknowledged")
"""As the findings count them."""


def build_changes(
    results: RunResults,
    found: Findings,
    series: Mapping[str, Sequence[Row]],
    labels: Mapping[str, str],
    result_pages: Mapping[str, str],
    file_names: Mapping[str, str],
) -> Changes:
    """A page of every SoC that findings, series or phones name.

    Args:
        series: finding id → trials of its case, as the history keeps them; findings without them have
            fewer charts.
        labels: case id → short name.
        result_pages: SoC → page with this run's results.
        file_names: SoC → ``soc-NAME.html``, for all SoCs of ``found``.
    """
    pages = {soc: name.replace("soc-", "changes-", 1) for soc, name in file_names.items()}
    names = {d.device_id: d.name for d in results.devices}
    per_soc = ordered(found)
    anchors = {
        f.finding_id: f"f{number}"
        for own in per_soc.values()
        for number, f in enumerate(own[:MAX_DETAILS], 1)
    }
    every_card = cards(found, labels, pages, anchors)
    rows: dict[str, list[SeriesRow]] = defaultdict(list)
    devices: dict[str, list[DeviceNight]] = defaultdict(list)
    for row in found.series:
        rows[row.soc].append(row)
    for device in found.devices:
        devices[device.soc].append(device)
    details = Details(results, found, series, names, labels)
    socs: list[SocChanges] = []
    for soc in file_names:
        own = per_soc.get(soc, [])
        sorted_rows = by_importance(rows[soc])
        links = {f.case_id: anchors[f.finding_id] for f in reversed(own) if f.finding_id in anchors}
        tallies = _tallies(sorted_rows, own)
        socs.append(
            SocChanges(
                soc=soc,
                file_name=pages[soc],
                table_file=pages[soc].removesuffix(".html") + ".csv",
                results_file=result_pages.get(soc, ""),
                sentence=_sentence(tallies, sorted_rows, soc),
                tallies=tallies,
                cards=tuple(c for c in every_card if c.group.soc == soc),
                details=tuple(details.of(entry(f, labels, pages, anchors)) for f in own[:MAX_DETAILS]),
                left_out=max(0, len(own) - MAX_DETAILS),
                rows=sorted_rows,
                first_rows=first_rows(sorted_rows, labels, links),
                data=table_data(sorted_rows, labels, links),
                csv=table_csv(sorted_rows, labels),
                kernels=tuple(sorted({labels.get(r.case_id, "").split(" ")[0] for r in sorted_rows} - {""})),
                phones=phone_nights(devices[soc], found.nights, names, "fleet"),
                sensitivity=sensitivity(sorted_rows),
            )
        )
    counts = tuple(Tally(name, found.counts.get(name, 0)) for name in TALLIES)
    return Changes(found, counts, tuple(socs), every_card, names, labels)


def socs_of(found: Findings) -> tuple[str, ...]:
    """In the order of their first series, finding or phone."""
    named = [r.soc for r in found.series] + [f.soc for f in found.findings] + [d.soc for d in found.devices]
    return tuple(dict.fromkeys(named))


def _tallies(rows: Sequence[SeriesRow], own: Sequence[Finding]) -> tuple[Tally, ...]:
    by = Counter(r.verdict for r in rows)
    numerics = sum(any(f != "improved" for f in r.flags) for r in rows)
    acknowledged = sum(f.triage is not None and f.triage.state == "acknowledged" for f in own)
    numbers = {name: by[name] for name in VERDICTS} | {"numerics": numerics, "acknowledged": acknowledged}
    return tuple(Tally(name, numbers[name]) for name in TALLIES)


def _sentence(tallies: Sequence[Tally], rows: Sequence[SeriesRow], soc: str) -> str:
    """The worst and the best news of one SoC; it claims calm only over what could be judged."""
    n = {t.name: t.number for t in tallies}
    total = plural(len(rows), "variant")
    if not rows:
        return f"{soc}: no variant was judged."
    news = [
        text
        for count, text in (
            (n["regressed"], f"{n['regressed']} regressed"),
            (n["improved"], f"{n['improved']} improved"),
            (n["numerics"], f"{n['numerics']} with other numerics"),
        )
        if count
    ]
    judged = n["regressed"] + n["improved"] + n["same"]
    unsure = [f"{n[k]} {k}" for k in ("inconclusive", "missing", "new") if n[k]]
    rest = f"{judged} of {total} could be judged" + (f" ({', '.join(unsure)})" if unsure else "")
    if not judged and not news:
        return f"{soc}: nothing could be judged: {', '.join(unsure)} of {total}."
    return f"{soc}: {', '.join(news) or 'no change found'}; {rest}."
