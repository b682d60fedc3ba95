"""What runs where, what was dropped and why, and how long it should take. Touches no device and no shader."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Literal

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import UsageError
from orchestrator.domain.expectation import Expectation
from orchestrator.domain.kernel import Kernel
from orchestrator.domain.results import Excluded, Pruned, RunResults
from orchestrator.planning.canary import PlannedCanary, canary_cases, expected, factor
from orchestrator.planning.estimate import Estimate, Estimator, Work
from orchestrator.planning.expand import Tally, expand_blocks
from orchestrator.planning.halves import HalfFit, half_fits
from orchestrator.planning.matrix import Block, Matrix, Sampling, Suite
from orchestrator.planning.overrides import apply_overrides, parse_override
from orchestrator.planning.prune import Drop, check, prune
from orchestrator.planning.select import compile_selection
from orchestrator.planning.suggest import shown
from orchestrator.planning.vocabulary import Vocabulary

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
        busy = sum(c.estimate.seconds for c in self.cases)
        return busy + sum(2 * c.estimate.seconds * self._batches(c.api) for c in self.canaries)

    @property
    def probes(self) -> int:
        return sum(c.role == "probe" for c in self.cases)

    def _batches(self, api: str) -> int:
        times = [c.estimate.seconds for c in self.cases if c.case.axes.get("api") == api]
        return max(1 + int(sum(times) // BATCH_S), -(-len(times) // BATCH_CASES))

    @property
    def guessed(self) -> int:
        """Cases whose time is a guess, not measured."""
        return sum(c.estimate.basis == "guess" for c in self.cases)


@dataclass(frozen=True, slots=True)
class Plan:
    suite: Suite
    """With overrides applied."""
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

    def sampling_of(self, case_id: str) -> Sampling:
        return self.sampling.get(case_id, self.suite.sampling)

    @property
    def trials(self) -> int:
        return sum(len(d.cases) for d in self.devices)

    @property
    def seconds(self) -> float:
        """Estimated time to the end: devices run side by side, those of one resource one after another."""
        busy: dict[str, float] = {}
        for planned in self.devices:
            resource = planned.device.resource
            busy[resource] = busy.get(resource, 0.0) + planned.seconds
        return max(busy.values(), default=0.0)


def build_plan(
    matrix: Matrix,
    suite_name: str,
    kernels: Mapping[str, Kernel],
    devices: Sequence[DeviceRecord],
    *,
    selection: str | None = None,
    overrides: Sequence[str] = (),
    history: RunResults | None = None,
    probes: bool = True,
) -> Plan:
    """The plan of one suite on the given devices, beside the matrix's probes unless ``probes`` is False.

    ``selection`` and ``overrides`` choose from the suite; probes and canaries run whatever they say. A budget
    that is exceeded is a warning; nothing is left out because of it.

    Raises:
        UsageError: unknown suite, wrong selection or override, or nothing selected.
        KernelFolderError: a kernel's own code failed.
    """
    suite, notes = apply_overrides(matrix.suite(suite_name), [parse_override(o) for o in overrides], kernels)
    selected = None if selection is None else compile_selection(selection, Vocabulary.of(kernels.values()))
    tally = Tally()
    points = _Points(suite)
    points.add(suite, expand_blocks(suite, matrix.excludes, tally=tally, selected=selected))
    own = frozenset(points.cases)
    found = bool(own)
    if probes and matrix.probes is not None:
        apart = _Points(suite)
        apart.add(matrix.probes, expand_blocks(matrix.probes, matrix.excludes, tally=tally))
        found = found or (selected is not None and any(selected(c) for c in apart.cases.values()))
        points = apart.before(points)
    excluded = tally.excluded()
    if not found and not excluded:
        what = "has no case" if selection is None else f"has no case that -k {shown(selection)} selects"
        raise UsageError(f"suite {suite.name} {what}")

    planner = _Planner(points, kernels, history)
    planned = [planner.device(device) for device in devices]
    warnings = [*matrix.warnings, *notes, *_device_warnings(suite, own, planned)]
    return Plan(
        suite,
        points.cases,
        planned,
        planner.pruned,
        excluded,
        list(matrix.expectations),
        warnings,
        points.sampling,
        planner.prepare_s(planned),
    )


class _Points:
    """Cases by id, and how often each runs where that is not the main suite's way."""

    def __init__(self, main: Suite) -> None:
        self._main = main
        self.cases: dict[str, Case] = {}
        self.sampling: dict[str, Sampling] = {}

    def add(self, suite: Suite, found: Iterable[tuple[Case, Block]]) -> None:
        for case, block in found:
            case_id = case.case_id
            self.cases[case_id] = case
            sampling = suite.sampling_of(block)
            if sampling != self._main.sampling:
                self.sampling[case_id] = sampling

    def before(self, others: "_Points") -> "_Points":
        """Both; a case of both runs as ``others`` say."""
        joined = _Points(self._main)
        joined.cases = self.cases | others.cases
        own = {case_id: s for case_id, s in self.sampling.items() if case_id not in others.cases}
        joined.sampling = own | others.sampling
        return joined

    def sampling_of(self, case_id: str) -> Sampling:
        return self.sampling.get(case_id, self._main.sampling)


class _Planner:
    """Decides device by device; what a case needs is asked once."""

    def __init__(self, points: _Points, kernels: Mapping[str, Kernel], history: RunResults | None) -> None:
        self._points = points
        self._kernels = kernels
        self._history = history
        self._estimator = Estimator(history)
        self._needs = {i: check(kernels[case.kernel], case) for i, case in points.cases.items()}
        self._works: dict[str, Work] = {}
        self._canaries = canary_cases(points.cases, kernels)
        self.pruned: list[Pruned] = []

    def device(self, device: DeviceRecord) -> DevicePlan:
        plan = DevicePlan(device, [])
        sent: set[str] = set()
        for case_id, case in self._points.cases.items():
            if case_id in self._canaries:
                continue
            drop = prune(self._needs[case_id], device)
            if drop is None:
                role = "probe" if self._kernels[case.kernel].role == "probe" else "op"
                key = self._work(case_id).data_key
                estimate = self._estimate(case_id, device, sent=key in sent)
                plan.cases.append(PlannedCase(case_id, case, estimate, role))
                sent.add(key)
            else:
                self._drop(device, case_id, drop)
        plan.canaries.extend(self._canaries_of(device, plan.cases))
        runs = [c.case_id for c in plan.cases]
        plan.half_fits.extend(half_fits(self._points.cases, self._needs, device, runs))
        return plan

    def _canaries_of(self, device: DeviceRecord, cases: Iterable[PlannedCase]) -> Iterator[PlannedCanary]:
        apis = {c.case.axes.get("api") for c in cases}
        for case_id, api in self._canaries.items():
            profile = device.profile(api)
            if api not in apis or profile is None:
                continue
            drop = prune(self._needs[case_id], device)
            if drop is not None:
                self._drop(device, case_id, drop)
                continue
            case = self._points.cases[case_id]
            yield PlannedCanary(
                case_id,
                case,
                api,
                self._canary_estimate(case_id, device),
                factor(self._kernels[case.kernel], profile),
                expected(device, profile, self._history),
            )

    def _canary_estimate(self, case_id: str, device: DeviceRecord) -> Estimate:
        """Mean of the two around a batch: the second one finds its shader compiled."""
        first, again = (self._estimate(case_id, device, compiled=c, sent=c) for c in (False, True))
        return replace(first, seconds=(first.seconds + again.seconds) / 2)

    def prepare_s(self, devices: Iterable[DevicePlan]) -> float:
        """Of everything that some device runs, each ``data_key`` once."""
        ran = dict.fromkeys(c.case_id for d in devices for c in d.cases)
        times: dict[str, float] = {}
        for work in map(self._work, ran):
            times[work.data_key] = max(times.get(work.data_key, 0.0), work.prepare_s)
        return sum(times.values())

    def _work(self, case_id: str) -> Work:
        if case_id not in self._works:
            case = self._points.cases[case_id]
            self._works[case_id] = Work.of(self._kernels[case.kernel], case)
        return self._works[case_id]

    def _estimate(
        self, case_id: str, device: DeviceRecord, *, compiled: bool = False, sent: bool = False
    ) -> Estimate:
        case, sampling = self._points.cases[case_id], self._points.sampling_of(case_id)
        work = self._work(case_id)
        return self._estimator.estimate(device, case, work, sampling, compiled=compiled, sent=sent)

    def _drop(self, device: DeviceRecord, case_id: str, drop: Drop) -> None:
        self.pruned.append(Pruned(device.device_id, case_id, drop.verdict, list(drop.reasons)))


def _device_warnings(suite: Suite, own: Set[str], planned: Sequence[DevicePlan]) -> list[str]:
    warnings: list[str] = []
    for plan in planned:
        name = plan.device.device_id
        if not any(c.case_id in own for c in plan.cases) and (own or not plan.cases):
            warnings.append(f"suite {suite.name}: {name}: nothing can run there; see the pruned points")
        if suite.budget_s is not None and plan.seconds > suite.budget_s:
            times = f"{plan.guessed} of {len(plan.cases)} times guessed"
            warnings.append(
                f"suite {suite.name}: {name}: planned {plan.seconds:.0f} s ({times}) > budget "
                f"{suite.budget_s:.0f} s; nothing is left out. Narrow it with -k or --set"
            )
    return warnings
