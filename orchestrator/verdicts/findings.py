"""Findings of a night: what moved, where, why and since when, in the words of ``domain.finding``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, isfinite, log10, nan
from typing import Literal

import numpy as np
from scipy.stats import t as student

from orchestrator.analysis.speed.causes import Cause as Why
from orchestrator.analysis.speed.groups import Group as Found
from orchestrator.analysis.speed.groups import Judged as Member
from orchestrator.analysis.speed.groups import groups
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.domain.digest import stable_id
from orchestrator.domain.finding import Cause, Finding, Group, PhoneChange, Triage
from orchestrator.domain.results import CaseInfo
from orchestrator.verdicts.confirming import confirmed_word, duels_of, sentence
from orchestrator.verdicts.numerics import Flagged
from orchestrator.verdicts.speed import Judged

MOVED = (Speed.REGRESSED, Speed.IMPROVED)
_Wrong = Literal["hash_changed", "nmse_doubled", "limit_crossed", "nondeterministic"]
_CAUSES: Mapping[Why, Cause] = {
    Why.CODE: "code",
    Why.DRIVER: "driver",
    Why.DEVICE: "device",
    Why.ENVIRONMENT: "environment",
}


def speed_findings(judged: Judged) -> list[Finding]:
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
    return _sorted(found)


def _moved(code: int) -> bool:
    return SPEEDS[code] in MOVED


def _sorted(found: list[Finding]) -> list[Finding]:
    return sorted(found, key=lambda f: (bool(f.device_id), -abs(f.effect), f.finding_id))


def _of_soc(judged: Judged, test: int) -> Finding:
    soc, case_id = judged.tests[test]
    delta = float(judged.night.pooled.delta[test])
    series = [s for s in judged.series_of(test) if isfinite(judged.night.deltas.delta[s])]
    showing = [s for s in series if np.sign(judged.night.deltas.delta[s]) == np.sign(delta)] or series
    reach = float(judged.night.pooled.se[test]) * float(student.ppf(0.975, judged.night.pooled.df[test]))
    return _finding(
        judged, test, showing, soc, case_id, "", delta, reach, float(judged.night.screened.q[test])
    )


def _of_phone(judged: Judged, series: int) -> Finding:
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
) -> Finding:
    lead, table = showing[0], judged.nights.table
    before = judged.before(lead)
    cause = judged.cause(test, showing)
    old, new = judged.environment(lead, before), judged.environment(lead, -1)
    speed = Speed.REGRESSED if delta > 0 else Speed.IMPROVED
    word = "regressed" if speed is Speed.REGRESSED else "improved"
    change = exp(delta) - 1
    # The second measurement may have asked a phone that shows nothing.
    asked = showing if device_id else judged.series_of(test)
    epoch = max(int(judged.nights.epoch[s, -1]) for s in asked)
    again = sentence(judged, asked)
    return Finding(
        finding_id=stable_id(
            {"speed": word, "soc": soc, "device": device_id, "case": case_id, "epoch": epoch}
        ),
        kind="speed",
        what=word,
        soc=soc,
        case_id=case_id,
        device_id=device_id,
        cause=_CAUSES[cause.cause],
        effect=delta,
        low=delta - reach,
        high=delta + reach,
        q=q,
        confirmed=confirmed_word(judged, test, lead if device_id else None),
        phones=[_phone(judged, s) for s in showing],
        since=table.runs[_since(judged, lead, showing, speed)],
        baseline=[table.runs[n] for n in judged.baseline(lead)],
        code_before=judged.code(lead, before),
        code_after=judged.code(lead, -1),
        environment_before="; ".join(filter(None, (old.driver, old.os_build))),
        environment_after="; ".join(filter(None, (new.driver, new.os_build))),
        detail=f"{abs(change):.1%} {'slower' if change > 0 else 'faster'}: {cause.why}"
        + (f"; {again}" if again else ""),
        duels=duels_of(judged, asked),
    )


def _phone(judged: Judged, series: int) -> PhoneChange:
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


def _since(judged: Judged, lead: int, showing: Sequence[int], speed: Speed) -> int:
    """The first of the last nights in a row that said the same; tonight where none did before."""
    said, code = judged.nights.said, SPEEDS.index(speed)
    night = said.shape[1] - 1
    for earlier in range(night - 1, -1, -1):
        there = [s for s in showing if judged.nights.table.code[s, earlier] >= 0]
        if not there:
            continue  # a missed night ends nothing
        if not any(said[s, earlier] == code for s in there):
            break
        night = earlier
    return night


def numerics_findings(flagged: Sequence[Flagged], soc_of: Mapping[str, str], judged: Judged) -> list[Finding]:
    """One for each flag of a case on a SoC, with the phones that show it. Better errors are no finding."""
    by_case: dict[tuple[str, str, _Wrong], list[Flagged]] = {}
    for item in flagged:
        if item.flag != "improved":
            by_case.setdefault((soc_of[item.device_id], item.case_id, item.flag), []).append(item)
    return [_numeric(soc, case_id, flag, items, judged) for (soc, case_id, flag), items in by_case.items()]


def _numeric(soc: str, case_id: str, flag: _Wrong, items: Sequence[Flagged], judged: Judged) -> Finding:
    first = items[0]
    table = judged.nights.table
    series = table.series.index((first.device_id, case_id))
    before = table.runs.index(first.baseline_run)
    old, new = judged.environment(series, before), judged.environment(series, -1)
    code_before, code_after = judged.code(series, before), judged.code(series, -1)
    cause: Cause = "code" if code_before != code_after else "driver" if old != new else "environment"
    # Nondeterminism is held against nothing, and an accepted one stays accepted.
    epoch = 0 if flag == "nondeterministic" else int(judged.nights.numerics_epoch[series, -1])
    ratio = first.after.nmse / first.before.nmse if first.before.nmse > 0 else nan
    words = {
        "hash_changed": f"another output: {first.before.hash[:8]} → {first.after.hash[:8]}",
        "nmse_doubled": f"NMSE {first.before.nmse:.2g} → {first.after.nmse:.2g}",
        "limit_crossed": f"NMSE {first.after.nmse:.2g} of at most {first.after.limit:.2g}, "
        f"{first.after.failing} elements outside their bound",
        "nondeterministic": f"{first.after.other} of {first.after.executions} executions differ",
    }
    return Finding(
        finding_id=stable_id(
            {"numerics": flag, "soc": soc, "case": case_id, "baseline": first.before.hash, "epoch": epoch}
        ),
        kind="numerics",
        what=flag,
        soc=soc,
        case_id=case_id,
        cause=cause,
        effect=log10(ratio) if ratio > 0 and isfinite(ratio) else 0.0,
        phones=[PhoneChange(i.device_id, 0.0, nan, nan, 1) for i in items],
        since=table.runs[-1],
        baseline=[first.baseline_run],
        code_before=code_before,
        code_after=code_after,
        environment_before="; ".join(filter(None, (old.driver, old.os_build))),
        environment_after="; ".join(filter(None, (new.driver, new.os_build))),
        detail=words[flag],
    )


def grouped(judged: Judged, findings: Sequence[Finding], cases: Mapping[str, CaseInfo]) -> list[Group]:
    """Findings of SoCs with one cause, as the report tells them."""
    of_test = {(f.soc, f.case_id): f for f in findings if f.kind == "speed" and not f.device_id}
    members: list[Member] = []
    for n, (soc, case_id) in enumerate(judged.tests):
        info = cases.get(case_id)
        if info is None or SPEEDS[int(judged.verdicts.tests[n])] in (Speed.MISSING, Speed.NEW):
            continue
        finding = of_test.get((soc, case_id))
        members.append(
            Member(
                soc=soc,
                case_id=case_id,
                kernel=info.case.kernel,
                axes={"op": info.case.op, **info.case.axes},
                effect=float(judged.night.pooled.delta[n]),
                cause=next((w for w, c in _CAUSES.items() if finding and c == finding.cause), None),
                since=_what_changed(finding) if finding else "",
            )
        )
    return [_group(g, of_test) for g in groups(members)]


def _what_changed(finding: Finding) -> str:
    """Software that is new, or the run since which it is so."""
    if finding.cause != "driver":
        return finding.since
    before = set(finding.environment_before.split("; "))
    return "; ".join(word for word in finding.environment_after.split("; ") if word not in before)


def _group(found: Found, of_test: Mapping[tuple[str, str], Finding]) -> Group:
    inside = sorted(
        (of_test[found.soc, i] for i in found.case_ids), key=lambda f: (-abs(f.effect), f.finding_id)
    )
    terms = dict(found.terms)
    axis = next((name for name in terms if name not in ("kernel", "case")), "")
    change = exp(found.effect) - 1
    how = "slower" if found.slower else "faster"
    return Group(
        group_id=stable_id({"soc": found.soc, "cause": found.cause.value, "terms": found.terms, "how": how}),
        sentence=f"{found.title}: {len(inside)} of {found.named} variants {abs(change):.1%} {how}",
        cause=_CAUSES[found.cause],
        what="regressed" if found.slower else "improved",
        soc=found.soc,
        kernel=terms.get("kernel", ""),
        axis=axis,
        value=terms.get(axis, ""),
        findings=[f.finding_id for f in inside],
    )


def triaged(findings: Sequence[Finding], decided: Mapping[str, Triage]) -> list[Finding]:
    return [replace(f, triage=decided.get(f.finding_id)) for f in findings]
