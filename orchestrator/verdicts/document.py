"""``Findings`` of a night: its sentence, counts, what was not measured, and all the parts in one document."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.words import plural
from orchestrator.domain.finding import EVERYTHING, Finding, Findings, Group
from orchestrator.domain.results import RunResults
from orchestrator.verdicts import other_clock
from orchestrator.verdicts.numerics import Flagged
from orchestrator.verdicts.phones import Presence, device_night, not_there
from orchestrator.verdicts.rows import WORDS, series_row
from orchestrator.verdicts.speed import Judged

MAX_DEGRADED = 3
"""Sentences beside what else was not measured; after a blip of Redis each phone may have one."""


def document(
    results: RunResults,
    judged: Judged,
    found: Sequence[Finding],
    groups: Sequence[Group],
    flagged: Sequence[Flagged],
    seen: Mapping[str, Presence],
    drifting: int,
) -> Findings:
    """
    Args:
        drifting: of ``found``, those that the weekly scan found.
    """
    rows = [series_row(judged, n, flagged) for n in range(len(judged.tests))]
    counts = {word: sum(r.verdict == word for r in rows) for word in WORDS.values()}
    counts["numerics"] = sum(any(flag != "improved" for flag in r.flags) for r in rows)
    counts["phones"] = sum(bool(f.device_id) for f in found)
    counts["drifts"] = drifting
    whole = [f for f in found if f.case_id == EVERYTHING]
    ids = {f.finding_id for f in whole}
    return Findings(
        run_id=results.run.run_id,
        suite=results.run.suite,
        nights=judged.nights.table.runs,
        sentence=_sentence(counts, judged, [g for g in groups if set(g.findings) & ids]),
        counts=counts,
        not_measured=[
            *_not_measured(results),
            *judged.nights.left_out,
            *not_there(results, judged, seen),
        ],
        groups=list(groups),
        findings=list(found),
        series=rows,
        devices=[device_night(judged, n, seen[name], whole) for n, name in enumerate(judged.devices)],
        method={name: float(value) for name, value in asdict(RULE).items()},
    )


def _sentence(counts: Mapping[str, int], judged: Judged, whole: Sequence[Group]) -> str:
    """``whole``: groups of SoCs and phones as a whole."""
    nights = len(judged.nights.table.runs) - 1
    told = "".join(f"; {group.sentence}" for group in whole)
    numerics = [f"{plural(counts['numerics'], 'variant')} with other numerics"] if counts["numerics"] else []
    decided = counts["same"] + counts["regressed"] + counts["improved"]
    if not decided and (elsewhere := other_clock.cases(judged)):
        need = f"the clock of {plural(elsewhere, 'case')} is not that of the accepted nights"
        return "; ".join([f"No verdict on speed: {need}", *numerics]) + told
    if not decided and (counts["new"] or nights < RULE.min_nights):
        need = f"{nights} nights before this one, {RULE.min_nights} accepted ones are needed"
        return "; ".join([f"No verdict on speed yet: {need}", *numerics]) + told
    words = [
        f"{counts[word]} {word}"
        for word in ("regressed", "improved", "inconclusive", "missing", "new")
        if counts[word]
    ]
    if counts["drifts"]:
        words.append(f"{counts['drifts']} drifting slowly")
    words[2:2] = numerics
    said = ", ".join(words) or ("No case changed by itself" if whole else "Nothing changed")
    return f"{said}; {counts['same']} of {len(judged.tests)} cases the same{told}"


def _not_measured(results: RunResults) -> list[str]:
    said = [f"DEGRADED: {sentence}" for sentence in results.run.degraded[:MAX_DEGRADED]]
    if (more := len(results.run.degraded) - MAX_DEGRADED) > 0:
        said.append(f"DEGRADED: {more} more, in the run's report")
    said += [f"night {m.night}: {m.why}" for m in results.run.missed_nights]
    said += [f"{m.device_id}: {m.why}" for m in results.missing if not m.case_id]
    cases = sum(bool(m.case_id) for m in results.missing)
    if cases:
        said.append(f"{cases} trials were planned and never came back")
    return said
