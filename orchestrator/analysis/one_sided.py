"""Cases that only one of two runs measured on a device, and why the other one did not."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from orchestrator.domain.case import Case
from orchestrator.domain.results import RunResults
from orchestrator.planning.expression import SelectionError
from orchestrator.planning.select import compile_selection


@dataclass(frozen=True, slots=True)
class OneSided:
    """A (device, case) that only one of the runs has a trial of."""

    device_id: str
    case_id: str
    label: str
    why: str
    """e.g. ``device not in the other run``, ``pruned in the other run: shared_bytes 36864 > 16384``."""
    gone: bool = False
    """Dropped by the plan: the other run's list of missing results does not name it, nor another device's
    result stands for it."""


@dataclass(frozen=True, slots=True)
class AbsentGroup:
    """Cases of one device that the other run does not have for one reason."""

    device_id: str
    why: str
    items: tuple[OneSided, ...]


def by_reason(items: Iterable[OneSided]) -> tuple[AbsentGroup, ...]:
    """The largest group first."""
    groups: dict[tuple[str, str], list[OneSided]] = defaultdict(list)
    for item in items:
        groups[item.device_id, item.why].append(item)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return tuple(AbsentGroup(device, why, tuple(own)) for (device, why), own in ordered)


class Absences:
    """Why ``other`` has no trial of what ``results`` measured."""

    def __init__(self, results: RunResults, other: RunResults) -> None:
        self._results = results
        self._other = other
        self._devices = {d.device_id: d for d in results.devices}
        self._there = {d.device_id: d for d in other.devices}
        self._pruned = {(p.device_id, p.case_id): ", ".join(p.reasons) for p in other.pruned}
        self._missing = {(m.device_id, m.case_id): m.why for m in other.missing}
        self._measured = {
            (self._there[t.device_id].soc.name, t.case_id): self._there[t.device_id].name
            for t in other.trials
            if t.device_id in self._there
        }
        self._excludes = [(_predicate(e.when), e) for e in other.excluded]

    def of(self, keys: Iterable[tuple[str, str]]) -> tuple[OneSided, ...]:
        """``keys``: (device, case) of trials of ``results``."""
        return tuple(self._one(device_id, case_id) for device_id, case_id in keys)

    def _one(self, device_id: str, case_id: str) -> OneSided:
        case = self._results.cases[case_id].case
        why, gone = self._why(device_id, case)
        return OneSided(device_id, case_id, case.label, why, gone)

    def _why(self, device_id: str, case: Case) -> tuple[str, bool]:
        device, other = self._devices[device_id], self._other.run
        if (pruned := self._pruned.get((device_id, case.case_id))) is not None:
            return f"pruned in the other run: {pruned}", True
        if (lost := self._missing.get((device_id, case.case_id))) is not None:
            return f"no result in the other run: {lost}", False
        stand_in = self._measured.get((device.soc.name, case.case_id))
        if stand_in is not None and (device_id in self._there or other.phones_per_soc):
            return f"measured on {stand_in} in the other run, which has the same SoC", False
        for name in (device_id, device.serial):
            if device_id not in self._there and (absent := self._missing.get((name, ""))) is not None:
                return f"device not in the other run: {absent}", False
        if device_id not in self._there:
            return "device not in the other run", not other.wanted
        if (reason := self._excluded(case)) is not None:
            return f"excluded in the other run: {reason}", True
        if not other.whole_suite:
            return "not selected in the other run", False
        if self._results.cases[case.case_id].role != "op" and not other.probes:
            return "the other run had no probes", False
        return "not planned in the other run", True

    def _excluded(self, case: Case) -> str | None:
        return next(
            (
                f"{e.when}: {e.reason} (owner {e.owner}, until {e.expires})"
                for is_it, e in self._excludes
                if is_it(case)
            ),
            None,
        )


def _predicate(when: str) -> Callable[[Case], bool]:
    """An exclude's ``when`` as results.json keeps it; one that cannot be read excludes nothing."""
    try:
        return compile_selection(when, source="results.json: excluded")
    except SelectionError:
        return lambda _: False
