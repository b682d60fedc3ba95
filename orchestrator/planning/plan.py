"""What runs where, what was dropped and why, and how long it should take. Touches no device and no shader."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import UsageError
from orchestrator.domain.expectation import Expectation
from orchestrator.domain.kernel import Kernel
from orchestrator.domain.results import Excluded, Pruned, RunResults
from orchestrator.planning.estimate import Estimate, Estimator
from orchestrator.planning.expand import Tally, expand
from orchestrator.planning.kernel_call import ask
from orchestrator.planning.matrix import Matrix, Suite
from orchestrator.planning.overrides import apply_overrides, parse_override
from orchestrator.planning.prune import Drop, Needs, check, prune
from orchestrator.planning.select import compile_selection
from orchestrator.planning.suggest import shown
from orchestrator.planning.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class PlannedCase:
    case_id: str
    case: Case
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class DevicePlan:
    device: DeviceRecord
    cases: list[PlannedCase]
    """In the order of the matrix."""

    @property
    def seconds(self) -> float:
        return sum(c.estimate.seconds for c in self.cases)

    @property
    def guessed(self) -> int:
        """Cases whose time is a guess, not measured."""
        return sum(c.estimate.basis == "guess" for c in self.cases)


@dataclass(frozen=True, slots=True)
class Plan:
    suite: Suite
    """With overrides applied."""
    cases: dict[str, Case]
    """Every selected case by id, those that no device can run included."""
    devices: list[DevicePlan]
    pruned: list[Pruned] = field(default_factory=list[Pruned])
    excluded: list[Excluded] = field(default_factory=list[Excluded])
    expectations: list[Expectation] = field(default_factory=list[Expectation])
    warnings: list[str] = field(default_factory=list[str])

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
) -> Plan:
    """The plan of one suite on the given devices.

    A budget that is exceeded is a warning; nothing is left out because of it.

    Raises:
        UsageError: unknown suite, wrong selection or override, or nothing selected.
        KernelFolderError: a kernel's own code failed.
    """
    suite, notes = apply_overrides(matrix.suite(suite_name), [parse_override(o) for o in overrides], kernels)
    selected = None if selection is None else compile_selection(selection, Vocabulary.of(kernels.values()))
    tally = Tally()
    cases = {c.case_id: c for c in expand(suite, matrix.excludes, tally=tally, selected=selected)}
    excluded = tally.excluded()
    if not cases and not excluded:
        what = "has no case" if selection is None else f"has no case that -k {shown(selection)} selects"
        raise UsageError(f"suite {suite.name} {what}")

    needs = {case_id: check(kernels[case.kernel], case) for case_id, case in cases.items()}
    estimator = Estimator(suite, history)
    planned: list[DevicePlan] = []
    pruned: list[Pruned] = []
    for device in devices:
        plan = DevicePlan(device, [])
        for case_id, case in cases.items():
            need = needs[case_id]
            drop = prune(need, device)
            if drop is not None:
                pruned.append(Pruned(device.device_id, case_id, drop.verdict, list(drop.reasons)))
            elif not isinstance(need, Drop):
                plan.cases.append(_planned(case_id, case, need, kernels[case.kernel], device, estimator))
        planned.append(plan)
    warnings = [*matrix.warnings, *notes, *_device_warnings(suite, planned)]
    return Plan(suite, cases, planned, pruned, excluded, list(matrix.expectations), warnings)


def _planned(
    case_id: str, case: Case, need: Needs, kernel: Kernel, device: DeviceRecord, estimator: Estimator
) -> PlannedCase:
    cost = ask(case, "cost", lambda: kernel.cost(case))
    return PlannedCase(case_id, case, estimator.estimate(device, need.api, case_id, cost, need.passes))


def _device_warnings(suite: Suite, planned: Sequence[DevicePlan]) -> list[str]:
    warnings: list[str] = []
    for plan in planned:
        name = plan.device.device_id
        if not plan.cases:
            warnings.append(f"suite {suite.name}: {name}: nothing can run there; see the pruned points")
        if suite.budget_s is not None and plan.seconds > suite.budget_s:
            times = f"{plan.guessed} of {len(plan.cases)} times guessed"
            warnings.append(
                f"suite {suite.name}: {name}: planned {plan.seconds:.0f} s ({times}) > budget "
                f"{suite.budget_s:.0f} s; nothing is left out. Narrow it with -k or --set"
            )
    return warnings
