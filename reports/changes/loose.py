"""Findings that the analysis put in no group: one phone's together, and one kernel's of one numerics flag."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from orchestrator.analysis.words import plural
from orchestrator.domain.digest import stable_id
from orchestrator.domain.finding import Finding, Group
from reports.changes.naming import Names

Key = tuple[str, ...]


def loose_groups(
    findings: Sequence[Finding], names: Names, phones: Mapping[str, str]
) -> list[tuple[Group, list[Finding]]]:
    """``phones``: device id → its name. The largest effect of a group first."""
    by_key: dict[Key, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_key[_key(finding, names)].append(finding)
    return [(_group(own, names, phones), own) for own in by_key.values()]


def _key(finding: Finding, names: Names) -> Key:
    if finding.device_id:
        return ("phone", finding.what, finding.device_id)
    if finding.kind == "numerics":
        kernel = names.kernel(finding.case_id) or finding.case_id
        return ("numerics", finding.what, finding.cause, finding.since, kernel)
    return ("alone", finding.finding_id)


def _group(own: Sequence[Finding], names: Names, phones: Mapping[str, str]) -> Group:
    first = own[0]
    socs = list(dict.fromkeys(f.soc for f in own))
    kernel = names.kernel(first.case_id)
    if len({f.case_id for f in own}) == 1:
        what = names.short(first.case_id)
    elif first.device_id:
        what = plural(len(own), "variant")
    else:
        what = f"{plural(len(own), 'result')} of {kernel or first.case_id}"
    if first.device_id:
        where = f"{phones.get(first.device_id, first.device_id)} alone"
    else:
        where = socs[0] if len(socs) == 1 else plural(len(socs), "SoC")
    return Group(
        group_id=stable_id({"loose": list(_key(first, names))}),
        sentence=f"{what} on {where}",
        cause=first.cause,
        what=first.what,
        soc=socs[0] if len(socs) == 1 else "",
        socs=socs,
        kernel=kernel,
        findings=[f.finding_id for f in own],
    )
