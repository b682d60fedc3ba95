"""A plan as data: what runs where, what was dropped and why, and how long it should take."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.expectation import Expectation
from orchestrator.domain.results import Excluded, Missing, Pruned
from orchestrator.planning.canary import PlannedCanary
from orchestrator.planning.estimate import Estimate
from orchestrator.planning.halves import HalfFit
from orchestrator.planning.matrix import Sampling, Suite

BATCH_S = 60.0
BATCH_CASES = 12
"""A batch holds no more, so that on-demand runs wait about a minute at most; canaries stand around it."""


@dataclass(frozen=True, slots=True)
class PlannedCase:
    case_id: str
    case: Case
    estimate: Estimate
    role: Literal["op", "probe"] = "op"


@dataclass(frozen=True, slots=True)
class DevicePlan:
    device: DeviceRecord
    cases: list[PlannedCase]
    """Probes first, then the suite in the order of the matrix."""
    canaries: list[PlannedCanary] = field(default_factory=list[PlannedCanary])
    """At most one an API, for the APIs of ``cases``."""
    half_fits: list[HalfFit] = field(default_factory=list[HalfFit])
    """Tiles that run here in 16 bits only."""

    @property
    def seconds(self) -> float:
        return _busy_s(self.cases, self.canaries)

    @property
    def probes(self) -> int:
        return sum(c.role == "probe" for c in self.cases)

    @property
    def guessed(self) -> int:
        """Cases whose time is a guess, not measured."""
        return sum(c.estimate.basis == "guess" for c in self.cases)


@dataclass(frozen=True, slots=True)
class AnywherePlan:
    """Cases that one of several phones of a SoC is to run, whichever is free first (decision 0024)."""

    soc: str
    devices: list[str]
    """Ids of the phones that may; each has a DevicePlan, too."""
    cases: list[PlannedCase]
    """In the order of the matrix; no probes."""
    canaries: list[PlannedCanary] = field(default_factory=list[PlannedCanary])
    """At most one an API. What latency to expect depends on the phone: none is given."""

    @property
    def seconds(self) -> float:
        """Of one phone, if it did all of them."""
        return _busy_s(self.cases, self.canaries)


def _busy_s(cases: Iterable[PlannedCase], canaries: Iterable[PlannedCanary]) -> float:
    times: dict[str, list[float]] = {}
    for c in cases:
        times.setdefault(str(c.case.axes.get("api", "")), []).append(c.estimate.seconds)
    around = sum(2 * c.estimate.seconds * _batches(times.get(c.api, [])) for c in canaries)
    return sum(map(sum, times.values())) + around


def _batches(times: Sequence[float]) -> int:
    return max(1 + int(sum(times) // BATCH_S), -(-len(times) // BATCH_CASES))


@dataclass(frozen=True, slots=True)
class Plan:
    suite: Suite
    """With overrides applied, those of ``phones`` too."""
    cases: dict[str, Case]
    """Every selected case and every probe by id, those that no device can run included."""
    devices: list[DevicePlan]
    pruned: list[Pruned] = field(default_factory=list[Pruned])
    excluded: list[Excluded] = field(default_factory=list[Excluded])
    expectations: list[Expectation] = field(default_factory=list[Expectation])
    warnings: list[str] = field(default_factory=list[str])
    sampling: dict[str, Sampling] = field(default_factory=dict[str, Sampling])
    """By case id, where it is not the suite's."""
    prepare_s: float = 0.0
    """Before the first dispatch: inputs, references and bounds on this machine, always a guess."""
    anywhere: list[AnywherePlan] = field(default_factory=list[AnywherePlan])
    """Beside what ``devices`` run themselves."""
    spare: list[str] = field(default_factory=list[str])
    """Phones that take no part: others of their SoC run all cases. They are not in ``devices``."""
    missing: list[Missing] = field(default_factory=list[Missing])
    """Phones of a SoC that the suite wants and that are not there."""
    able: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Phone that cases were placed on, spare ones included → cases that it could run instead of another."""
    reserve: list[DeviceRecord] = field(default_factory=list[DeviceRecord])
    """The spare phones."""

    def sampling_of(self, case_id: str) -> Sampling:
        return self.sampling.get(case_id, self.suite.sampling)

    @property
    def trials(self) -> int:
        return sum(len(d.cases) for d in self.devices) + sum(len(a.cases) for a in self.anywhere)

    @property
    def seconds(self) -> float:
        """Estimated time to the end: devices run side by side, those of one resource one after another."""
        busy: dict[str, float] = {}
        for planned in self.devices:
            resource = planned.device.resource
            busy[resource] = busy.get(resource, 0.0) + self.seconds_of(planned)
        return max(busy.values(), default=0.0)

    def seconds_of(self, planned: DevicePlan) -> float:
        """Its own cases, and an equal share of those that it may run instead of others."""
        name = planned.device.device_id
        return planned.seconds + sum(a.seconds / len(a.devices) for a in self.anywhere if name in a.devices)
