"""Findings with one cause as one group and one sentence, over SoCs where the cause is the code."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from orchestrator.analysis.speed.groups import Group as Found
from orchestrator.analysis.speed.groups import Judged as Member
from orchestrator.analysis.speed.groups import groups
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.analysis.words import faster_or_slower
from orchestrator.domain.case import Case, axis_text
from orchestrator.domain.digest import stable_id
from orchestrator.domain.finding import EVERYTHING, Group
from orchestrator.domain.results import CaseInfo
from orchestrator.verdicts.findings import Told
from orchestrator.verdicts.origin import CAUSES
from orchestrator.verdicts.speed import Judged
from orchestrator.verdicts.words import day, places

_WHY = {cause: why for why, cause in CAUSES.items()}
_NAMING = ("api", "precision", "tile", "layout")
"""Axes that people call a single variant by."""
_SAYS = {
    "hash_changed": "another output",
    "nmse_doubled": "NMSE at least doubled",
    "limit_crossed": "outside of tolerance",
    "nondeterministic": "results differ",
}
_LEAST = 2
"""Findings that are told as a share of variants."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Findings that may share a group: of speed, or of one flag; whether a drift."""

    what: str
    drift: bool


def grouped(judged: Judged, told: Sequence[Told], cases: Mapping[str, CaseInfo]) -> list[Group]:
    """Of SoCs and phones as a whole first, then the largest; findings of a single case on a single phone are
    in none."""
    whole = [_of_whole(judged, t) for t in told if t.finding.case_id == EVERYTHING]
    kinds: dict[_Kind, list[Told]] = defaultdict(list)
    for item in told:
        if item.finding.case_id != EVERYTHING and not item.finding.device_id:
            what = "speed" if item.finding.kind == "speed" else item.finding.what
            kinds[_Kind(what, item.drift)].append(item)
    found = [g for kind, own in kinds.items() for g in _of_kind(judged, kind, own, cases)]
    return whole + sorted(found, key=lambda g: (-len(g.findings), g.group_id))


def _of_kind(judged: Judged, kind: _Kind, told: Sequence[Told], cases: Mapping[str, CaseInfo]) -> list[Group]:
    of_case = {(t.finding.soc, t.finding.case_id): t for t in told}
    since = dict.fromkeys(of_case, "") if kind.drift else _known_by(judged, told)
    moved = kind.what == "speed"
    members: list[Member] = []
    for n, (soc, case_id) in enumerate(judged.tests):
        info, item = cases.get(case_id), of_case.get((soc, case_id))
        speed = SPEEDS[int(judged.verdicts.tests[n])]
        if info is None or (item is None and speed in (Speed.MISSING, Speed.NEW)):
            continue
        if item is None and moved and speed in (Speed.REGRESSED, Speed.IMPROVED):
            continue
        members.append(
            Member(
                soc=soc,
                case_id=case_id,
                kernel=info.case.kernel,
                op=info.case.op,
                axes=info.case.axes,
                effect=item.finding.effect if item and moved else 1.0,
                cause=_WHY[item.finding.cause] if item else None,
                since=since[soc, case_id] if item else "",
            )
        )
    return [_group(judged, kind, g, of_case, cases) for g in groups(members)]


def _known_by(judged: Judged, told: Sequence[Told]) -> dict[tuple[str, str], str]:
    """(SoC, case) → what findings of one cause share: the night. A phone that missed it got the new code
    later; the case's first one counts."""
    first: dict[tuple[str, str], int] = {}
    for t in told:
        key = t.finding.case_id, t.finding.code_after
        first[key] = min(first.get(key, t.origin.night), t.origin.night)
    runs = judged.nights.table.runs
    return {
        (t.finding.soc, t.finding.case_id): runs[
            first[t.finding.case_id, t.finding.code_after] if t.origin.cause == "code" else t.origin.night
        ]
        for t in told
    }


def _group(
    judged: Judged,
    kind: _Kind,
    found: Found,
    of_case: Mapping[tuple[str, str], Told],
    cases: Mapping[str, CaseInfo],
) -> Group:
    own = [of_case[member] for member in found.members]
    inside = sorted((t.finding for t in own), key=lambda f: (-abs(f.effect), f.finding_id))
    first = min(own, key=lambda t: t.origin.night)
    terms = dict(found.terms)
    axis = next((name for name in terms if name not in ("kernel", "case")), "")
    cause = CAUSES[found.cause]
    what = inside[0].what
    title = found.title if "case" not in terms else _name(cases[terms["case"]].case)
    since = day(judged, first.origin.night)
    where = places(found.socs, len(judged.socs))
    effect = median(f.effect for f in inside)
    share = f"{len(inside)} of {found.named} variants " if found.named >= _LEAST else ""
    said = f"{share}{faster_or_slower(effect)}" if kind.what == "speed" else _share(_SAYS[what], share)
    return Group(
        group_id=stable_id(
            {
                "what": what,
                "cause": cause,
                "terms": found.terms,
                "soc": "" if cause == "code" else found.socs[0],
                "since": first.finding.since,
                "drift": kind.drift,
            }
        ),
        sentence=f"{title} on {where} since {since}: {said} ({_because(first, drift=kind.drift)})",
        cause=cause,
        what=what,
        soc=found.socs[0] if len(found.socs) == 1 else "",
        socs=list(found.socs),
        since=first.finding.since,
        changed=first.origin.changed,
        effect=effect,
        named=found.named,
        kernel=found.kernel,
        axis=axis,
        value=terms.get(axis, ""),
        findings=[f.finding_id for f in inside],
    )


def _share(said: str, share: str) -> str:
    return f"{share.rstrip()}: {said}" if share else said


def _of_whole(judged: Judged, told: Told) -> Group:
    """A SoC, or a phone, all of whose cases moved together."""
    finding = told.finding
    where = finding.device_id or finding.soc
    named = len({case_id for soc, case_id in judged.tests if soc == finding.soc})
    return Group(
        group_id=stable_id({"whole": where, "what": finding.what, "since": finding.since}),
        sentence=f"all {named} variants on {where} since {day(judged, told.origin.night)}: "
        f"{faster_or_slower(finding.effect)} together ({_because(told)})",
        cause=finding.cause,
        what=finding.what,
        soc=finding.soc,
        socs=[finding.soc],
        since=finding.since,
        changed=told.origin.changed,
        effect=finding.effect,
        named=named,
        findings=[finding.finding_id],
    )


def _because(told: Told, *, drift: bool = False) -> str:
    if drift:
        new = f"; new meanwhile: {told.origin.changed}" if told.origin.changed else ""
        return f"a slow drift{new}"
    match told.finding.cause:
        case "code":
            return f"{told.origin.changed} changed"
        case "driver":
            return told.origin.changed
        case "device":
            return "this phone alone"
        case "environment":
            return told.origin.changed or "same code and software"


def _name(case: Case) -> str:
    """``attention_flash gles fp16_storage 128x16``"""
    return " ".join([case.kernel, *(axis_text(case.axes[name]) for name in _NAMING if name in case.axes)])
