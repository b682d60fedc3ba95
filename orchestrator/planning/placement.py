"""Which phones of a SoC run a case that is not wanted on all of them (decision 0024).

``place`` decides, ``placed`` applies it to a plan. The draw is made by digests of a seed: one seed always
draws the same.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.job import CanaryLatency
from orchestrator.domain.results import Missing, RunResults
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.planned import AnywherePlan, DevicePlan, Plan

Series = Set[tuple[str, str]]
"""(device id, case id) with a result in the run before."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A phone, and what of the suite it is able to run."""

    device_id: str
    soc: str
    seconds: Mapping[str, float]
    """Case id → estimated time there, in the order of the matrix."""
    virtual: bool = False
    """A virtual phone never stands in for a real one of its SoC."""
    busy_s: float = 0.0
    """What it has to do whatever it gets: probes."""


@dataclass(frozen=True, slots=True)
class Anywhere:
    """Cases that any one of some phones is to run, whichever is free first."""

    soc: str
    devices: tuple[str, ...]
    cases: list[str]


@dataclass(frozen=True, slots=True)
class Short:
    """A SoC with fewer phones than wanted."""

    soc: str
    devices: tuple[str, ...]
    wanted: int

    @property
    def sentence(self) -> str:
        there = ", ".join(self.devices)
        return f"{self.wanted} phones of {self.soc} wanted, {len(self.devices)} there ({there})"

    @property
    def unmet(self) -> list[str]:
        """A name for each phone that is not there."""
        there = len(self.devices)
        return [f"{self.soc} (phone {n} of {self.wanted})" for n in range(there + 1, self.wanted + 1)]


@dataclass(frozen=True, slots=True)
class Placement:
    cases: dict[str, set[str]]
    """Device id → case ids that it must run itself; every candidate is a key."""
    anywhere: list[Anywhere] = field(default_factory=list[Anywhere])
    short: list[Short] = field(default_factory=list[Short])

    @property
    def spare(self) -> list[str]:
        """Candidates that nothing is left for."""
        shared = {device_id for group in self.anywhere for device_id in group.devices}
        return [i for i, cases in self.cases.items() if not cases and i not in shared]


def place(candidates: Iterable[Candidate], wanted: int, series: Series, seed: str) -> Placement:
    """Each case on ``wanted`` phones of each SoC that are able to run it, or on all that there are.

    First come phones that have the case's series, then the least busy ones, drawn among equals. With
    ``wanted`` 1, a case whose series no phone has goes to whichever phone is free first.
    """
    kinds: dict[tuple[str, bool], list[Candidate]] = {}
    placement = Placement({})
    for phone in candidates:
        kinds.setdefault((phone.soc, phone.virtual), []).append(phone)
        placement.cases[phone.device_id] = set()
    for (soc, _), phones in kinds.items():
        if len(phones) < wanted:
            placement.short.append(Short(soc, tuple(p.device_id for p in phones), wanted))
        _place(phones, wanted, series, seed, placement)
    return placement


def _place(phones: Sequence[Candidate], wanted: int, series: Series, seed: str, placement: Placement) -> None:
    """Phones that may stand in for each other."""
    able: dict[str, list[Candidate]] = {}
    for phone in phones:
        for case_id in phone.seconds:
            able.setdefault(case_id, []).append(phone)
    busy_s = {phone.device_id: phone.busy_s for phone in phones}
    taken: dict[str, int] = dict.fromkeys(able, 0)
    order = sorted(able, key=lambda case_id: sha256_hex(f"{seed} {case_id}".encode()))
    anywhere: dict[tuple[str, ...], set[str]] = {}

    def take(case_id: str, options: list[Candidate]) -> None:
        while options and taken[case_id] < wanted:
            least_s = min(busy_s[p.device_id] for p in options)
            equals = [p for p in options if busy_s[p.device_id] == least_s]
            phone = min(equals, key=lambda p: _draw(seed, p, case_id))
            options.remove(phone)
            placement.cases[phone.device_id].add(case_id)
            busy_s[phone.device_id] += phone.seconds[case_id]
            taken[case_id] += 1

    # Every series first: what is drawn afterwards evens out what they leave unequal.
    for case_id in order:
        take(case_id, [p for p in able[case_id] if (p.device_id, case_id) in series])
    for case_id in order:
        others = [p for p in able[case_id] if case_id not in placement.cases[p.device_id]]
        if wanted == 1 and taken[case_id] == 0 and len(others) > 1:
            anywhere.setdefault(tuple(p.device_id for p in others), set()).add(case_id)
        else:
            take(case_id, others)
    placement.anywhere.extend(
        Anywhere(phones[0].soc, devices, [i for i in able if i in cases])
        for devices, cases in anywhere.items()
    )


def _draw(seed: str, phone: Candidate, case_id: str) -> str:
    return sha256_hex(f"{seed} {phone.device_id} {case_id}".encode())


def placed(plan: Plan, wanted: int, history: RunResults | None, seed: str) -> Plan:
    """With each case on ``wanted`` phones of each SoC. Other devices, and all probes, stay as they are."""
    candidates = [c for planned in plan.devices if (c := _candidate(planned)) is not None]
    placement = place(candidates, wanted, _series(history, {c.device_id for c in candidates}), seed)
    short = [Missing(name, "", s.sentence) for s in placement.short for name in s.unmet]
    by_id = {planned.device.device_id: planned for planned in plan.devices}
    spare = placement.spare
    return replace(
        plan,
        devices=[_left(d, placement) for i, d in by_id.items() if i not in spare],
        pruned=[p for p in plan.pruned if p.device_id not in spare],
        warnings=[*plan.warnings, *(s.sentence for s in placement.short)],
        anywhere=[
            _anywhere(group.soc, [by_id[i] for i in group.devices], set(group.cases))
            for group in placement.anywhere
        ],
        spare=spare,
        missing=short,
        able={c.device_id: list(c.seconds) for c in candidates},
        reserve=[by_id[i].device for i in spare],
    )


def _candidate(planned: DevicePlan) -> Candidate | None:
    """A phone with cases to place, whose SoC is really known: the same unknown name may hide two."""
    device = planned.device
    seconds = {c.case_id: c.estimate.seconds for c in planned.cases if c.role == "op"}
    if device.transport != "adb" or not device.soc.model or not seconds:
        return None
    busy_s = sum(c.estimate.seconds for c in planned.cases if c.role == "probe")
    return Candidate(device.device_id, device.soc.name, seconds, device.virtual, busy_s)


def _series(history: RunResults | None, there: Set[str]) -> set[tuple[str, str]]:
    """Who measured what in the run before. A stand-in did it for a device that goes on if it is there."""
    return {
        (t.planned_for if t.planned_for in there else t.device_id, t.case_id)
        for t in (history.trials if history else ())
        if t.verdict is not Verdict.INFRA
    }


def _left(planned: DevicePlan, placement: Placement) -> DevicePlan:
    """What it has to run itself, and the canaries for that."""
    own = placement.cases.get(planned.device.device_id)
    if own is None:
        return planned
    cases = [c for c in planned.cases if c.role == "probe" or c.case_id in own]
    apis = {c.case.axes.get("api") for c in cases}
    return replace(planned, cases=cases, canaries=[c for c in planned.canaries if c.api in apis])


def _anywhere(soc: str, phones: Sequence[DevicePlan], ids: Set[str]) -> AnywherePlan:
    """Canaries are those that every one of the phones can run."""
    cases = [c for c in phones[0].cases if c.case_id in ids]
    apis = {c.case.axes.get("api") for c in cases}
    able = [{c.case_id for c in phone.canaries} for phone in phones]
    canaries = [
        replace(c, expected=CanaryLatency())
        for c in phones[0].canaries
        if c.api in apis and all(c.case_id in found for found in able)
    ]
    return AnywherePlan(soc, [p.device.device_id for p in phones], cases, canaries)
