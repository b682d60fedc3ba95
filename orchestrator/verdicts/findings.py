"""Findings of speed: what moved, where, why and since when, in the words of ``domain.finding``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, isfinite, nan

import numpy as np
from scipy.stats import t as student

from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.analysis.words import faster_or_slower
from orchestrator.domain.digest import stable_id
from orchestrator.domain.finding import Finding, PhoneChange, Triage
from orchestrator.verdicts.confirming import confirmed_word, duels_of, sentence
from orchestrator.verdicts.origin import Origin, noise, origin_of
from orchestrator.verdicts.speed import Judged
from orchestrator.verdicts.words import day

MOVED = (Speed.REGRESSED, Speed.IMPROVED)


@dataclass(frozen=True, slots=True)
class Told:
    """A finding and where it comes from."""

    finding: Finding
    origin: Origin
    drift: bool = False
    """Slow, and seen over many nights only (``drifts``)."""


def speed_findings(judged: Judged) -> list[Told]:
    """Of SoCs, then of single phones; the largest effects first."""
    tests = [_moved(int(code)) for code in judged.verdicts.tests]
    found = [_of_soc(judged, n) for n, moved in enumerate(tests) if moved]
    for n, code in enumerate(judged.verdicts.series):
        if _moved(int(code)) and not tests[judged.matrix.test[n]]:
            found.append(_of_phone(judged, n))
    return _sorted(found)


def unconfirmed_findings(judged: Judged) -> list[Finding]:
    """What the first look found and the second did not say again: no alarm, and nothing to be hidden."""
    plan, night = judged.second.plan, judged.night
    tests = plan.tests & night.screened.found
    found = [
        _of_soc(judged, n)
        for n in np.flatnonzero(tests).tolist()
        if not _moved(int(judged.verdicts.tests[n]))
    ]
    phones = plan.series & night.phone.found & ~tests[judged.matrix.test]
    found += [
        _of_phone(judged, n)
        for n in np.flatnonzero(phones).tolist()
        if not _moved(int(judged.verdicts.series[n]))
        and not _moved(int(judged.verdicts.tests[judged.matrix.test[n]]))
    ]
    return [told.finding for told in _sorted(found)]


def _moved(code: int) -> bool:
    return SPEEDS[code] in MOVED


def _sorted(found: list[Told]) -> list[Told]:
    return sorted(
        found, key=lambda t: (bool(t.finding.device_id), -abs(t.finding.effect), t.finding.finding_id)
    )


def _of_soc(judged: Judged, test: int) -> Told:
    soc, case_id = judged.tests[test]
    delta = float(judged.night.pooled.delta[test])
    series = [s for s in judged.series_of(test) if isfinite(judged.night.deltas.delta[s])]
    showing = [s for s in series if np.sign(judged.night.deltas.delta[s]) == np.sign(delta)] or series
    reach = float(judged.night.pooled.se[test]) * float(student.ppf(0.975, judged.night.pooled.df[test]))
    return _finding(
        judged, test, showing, soc, case_id, "", delta, reach, float(judged.night.screened.q[test])
    )


def _of_phone(judged: Judged, series: int) -> Told:
    test = int(judged.matrix.test[series])
    device_id, case_id = judged.nights.table.series[series]
    each = judged.night.deltas
    reach = float(each.se[series]) * float(student.ppf(0.975, each.df[series]))
    delta, q = float(each.delta[series]), float(judged.night.phone.q[series])
    soc = judged.tests[test][0]
    return _finding(judged, test, [series], soc, case_id, device_id, delta, reach, q)


def _finding(
    judged: Judged,
    test: int,
    showing: list[int],
    soc: str,
    case_id: str,
    device_id: str,
    delta: float,
    reach: float,
    q: float,
) -> Told:
    lead, table = showing[0], judged.nights.table
    before = judged.before(lead)
    origin = origin_of(judged, test, showing, delta, noise(judged, test, lead if device_id else None))
    old, new = judged.environment(lead, before), judged.environment(lead, -1)
    word = "regressed" if delta > 0 else "improved"
    # The second measurement may have asked a phone that shows nothing.
    asked = showing if device_id else judged.series_of(test)
    epoch = max(int(judged.nights.epoch[s, -1]) for s in asked)
    again = sentence(judged, asked)
    finding = Finding(
        finding_id=stable_id(
            {"speed": word, "soc": soc, "device": device_id, "case": case_id, "epoch": epoch}
        ),
        kind="speed",
        what=word,
        soc=soc,
        case_id=case_id,
        device_id=device_id,
        cause=origin.cause,
        effect=delta,
        low=delta - reach,
        high=delta + reach,
        q=q,
        confirmed=confirmed_word(judged, test, lead if device_id else None),
        phones=[phone_change(judged, s) for s in showing],
        since=table.runs[origin.night],
        baseline=[table.runs[n] for n in judged.baseline(lead)],
        code_before=judged.code(lead, before),
        code_after=judged.code(lead, -1),
        environment_before="; ".join(filter(None, (old.driver, old.os_build))),
        environment_after="; ".join(filter(None, (new.driver, new.os_build))),
        detail=f"{faster_or_slower(delta)} since {day(judged, origin.night)}: {origin.why}"
        + (f"; {again}" if again else ""),
        duels=duels_of(judged, asked),
    )
    return Told(finding, origin)


def phone_change(judged: Judged, series: int) -> PhoneChange:
    nights = judged.baseline(series)
    table = judged.nights.table
    before = np.median(table.log_ns[series, nights]) if nights else nan
    return PhoneChange(
        device_id=table.series[series][0],
        effect=float(judged.night.deltas.delta[series]),
        before_ns=exp(float(before)) if isfinite(before) else nan,
        after_ns=exp(float(table.log_ns[series, -1])),
        nights=len(nights),
    )


def triaged(findings: Sequence[Finding], decided: Mapping[str, Triage]) -> list[Finding]:
    return [replace(f, triage=decided.get(f.finding_id)) for f in findings]
