"""Findings of numerics: one for each flag of a case on a SoC, with the phones that show it."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from math import isfinite, log10, nan
from typing import Literal, assert_never

import numpy as np

from orchestrator.analysis.speed.numeric_trend import FACTOR
from orchestrator.analysis.speed.rows import Bools
from orchestrator.domain.digest import stable_id
from orchestrator.domain.finding import Finding, PhoneChange
from orchestrator.verdicts.findings import Told
from orchestrator.verdicts.numerics import Flagged, with_output
from orchestrator.verdicts.origin import Origin, what_was_new
from orchestrator.verdicts.speed import Judged
from orchestrator.verdicts.words import day

_Wrong = Literal["hash_changed", "nmse_doubled", "limit_crossed", "nondeterministic"]


def told_once(flagged: Sequence[Flagged], soc_of: Mapping[str, str]) -> list[Flagged]:
    """Without errors that grew of a case that is beyond its limit on the same SoC: that is one fault."""
    beyond = {(soc_of[f.device_id], f.case_id) for f in flagged if f.flag == "limit_crossed"}
    return [f for f in flagged if f.flag != "nmse_doubled" or (soc_of[f.device_id], f.case_id) not in beyond]


def numerics_findings(flagged: Sequence[Flagged], soc_of: Mapping[str, str], judged: Judged) -> list[Told]:
    """Better errors are no finding."""
    by_case: dict[tuple[str, str, _Wrong], list[Flagged]] = {}
    # In one order: results come as they were measured, and ids hold the first phone's output.
    for item in sorted(flagged, key=lambda i: i.device_id):
        if item.flag != "improved":
            by_case.setdefault((soc_of[item.device_id], item.case_id, item.flag), []).append(item)
    rows = {series: row for row, series in enumerate(judged.nights.table.series)} if by_case else {}
    return [
        _numeric(soc, flag, items, judged, [rows[i.device_id, case_id] for i in items])
        for (soc, case_id, flag), items in by_case.items()
    ]


def _numeric(
    soc: str,
    flag: _Wrong,
    items: Sequence[Flagged],
    judged: Judged,
    series: Sequence[int],
) -> Told:
    first, lead = items[0], series[0]
    new = judged.environment(lead, -1)
    whose = zip(series, items, strict=True)
    origin = min(
        (_origin(judged, row, flag, item) for row, item in whose),
        key=lambda o: o.night,
    )
    # Nondeterminism is held against nothing, and an accepted one stays accepted.
    epoch = 0 if flag == "nondeterministic" else int(judged.nights.numerics_epoch[lead, -1])
    ratio = first.after.nmse / first.before.nmse if first.before.nmse > 0 else nan
    words = {
        "hash_changed": f"another output: {first.before.hash[:8]} → {first.after.hash[:8]}",
        "nmse_doubled": f"NMSE {first.before.nmse:.2g} → {first.after.nmse:.2g}",
        "limit_crossed": f"NMSE {first.after.nmse:.2g} of at most {first.after.limit:.2g}, "
        f"{first.after.failing} elements outside their bound",
        "nondeterministic": f"{first.after.other} of {first.after.executions} executions differ",
    }
    finding = Finding(
        finding_id=stable_id(
            {
                "numerics": flag,
                "soc": soc,
                "case": first.case_id,
                "baseline": first.before.hash,
                "epoch": epoch,
            }
        ),
        kind="numerics",
        what=flag,
        soc=soc,
        case_id=first.case_id,
        cause=origin.cause,
        effect=log10(ratio) if ratio > 0 and isfinite(ratio) else 0.0,
        phones=[PhoneChange(i.device_id, 0.0, nan, nan, 1) for i in items],
        since=judged.nights.table.runs[origin.night],
        baseline=[first.baseline_run],
        code_before=first.code_before,
        code_after=judged.code(lead, -1),
        environment_before=first.environment_before,
        environment_after="; ".join(filter(None, (new.driver, new.os_build))),
        detail=f"{words[flag]} since {day(judged, origin.night)}: {origin.why}",
    )
    return Told(finding, origin)


def _origin(judged: Judged, series: int, flag: _Wrong, item: Flagged) -> Origin:
    """The first of the last nights in a row that show it; nights without an output end nothing."""
    shows = _shows(judged, series, flag, item)
    # A pinned run may be older than all of them.
    baseline = bisect_right(judged.nights.table.runs, item.baseline_run) - 1
    there = with_output(judged.nights.table, series)
    night = last = len(shows) - 1
    for earlier in range(last - 1, baseline, -1):
        if there[earlier] and not shows[earlier]:
            break
        if there[earlier]:
            night = earlier
    return what_was_new(judged, series, night, there)


def _shows(judged: Judged, series: int, flag: _Wrong, item: Flagged) -> Bools:
    """(nights,)"""
    table = judged.nights.table
    nmse = table.numerics["nmse"][series]
    match flag:
        case "hash_changed":
            return table.hash[series] == table.hash[series, -1]
        case "nmse_doubled":
            return ~(nmse < FACTOR * item.before.nmse)
        case "limit_crossed":
            mismatch = {n for n, word in enumerate(table.verdicts) if word == "mismatch"}
            return np.isin(table.verdict[series], list(mismatch)) | ~(nmse <= item.after.limit)
        case "nondeterministic":
            return table.distinct[series] > 1
        case _:
            assert_never(flag)
