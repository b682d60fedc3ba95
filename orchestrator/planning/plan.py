"""A suite and devices → their plan (planned.py). Touches no device and no shader."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import UsageError
from orchestrator.domain.kernel import Kernel
from orchestrator.domain.results import Pruned, RunResults
from orchestrator.planning.canary import PlannedCanary, canary_cases, expected, factor
from orchestrator.planning.estimate import Estimate, Estimator, Work
from orchestrator.planning.expand import Tally, expand_blocks
from orchestrator.planning.halves import half_fits
from orchestrator.planning.matrix import Block, Matrix, Sampling, Suite
from orchestrator.planning.overrides import apply_overrides, parse_override
from orchestrator.planning.placement import placed
from orchestrator.planning.planned import (
    BATCH_CASES,
    BATCH_S,
    AnywherePlan,
    DevicePlan,
    Plan,
    PlannedCase,
)
from orchestrator.planning.prune import Drop, check, prune
from orchestrator.planning.select import compile_selection
from orchestrator.planning.suggest import shown
from orchestrator.planning.vocabulary import Vocabulary

__all__ = ["BATCH_CASES", "BATCH_S", "AnywherePlan", "DevicePlan", "Plan", "PlannedCase", "build_plan"]


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
    phones: int | None = None,
    seed: str = "",
) -> Plan:
    """The plan of one suite on the given devices, beside the matrix's probes unless ``probes`` is False.

    ``selection`` and ``overrides`` choose from the suite; probes and canaries run whatever they say. A budget
    that is exceeded is a warning; nothing is left out because of it.

    Args:
        phones: of each SoC that run a case, instead of the suite's ``min_phones_per_soc``; 0: all of them.
        seed: for the draw among phones that are equally fit.

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
    if phones is not None:
        suite = replace(suite, min_phones_per_soc=phones or None)
    excluded = tally.excluded()
    if not found and not excluded:
        what = "has no case" if selection is None else f"has no case that -k {shown(selection)} selects"
        raise UsageError(f"suite {suite.name} {what}")

    planner = _Planner(points, kernels, history)
    planned = [planner.device(device) for device in devices]
    warnings = [*matrix.warnings, *notes, *_idle_warnings(suite, own, planned)]
    plan = Plan(
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
    if suite.min_phones_per_soc is not None:
        plan = placed(plan, suite.min_phones_per_soc, history, seed)
    plan.warnings.extend(_budget_warnings(plan))
    return plan


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


def _idle_warnings(suite: Suite, own: Set[str], planned: Iterable[DevicePlan]) -> Iterator[str]:
    for plan in planned:
        name = plan.device.device_id
        if not any(c.case_id in own for c in plan.cases) and (own or not plan.cases):
            yield f"suite {suite.name}: {name}: nothing can run there; see the pruned points"


def _budget_warnings(plan: Plan) -> Iterator[str]:
    budget_s = plan.suite.budget_s
    for planned in plan.devices:
        seconds = plan.seconds_of(planned)
        if budget_s is not None and seconds > budget_s:
            times = f"{planned.guessed} of {len(planned.cases)} times guessed"
            where = f"suite {plan.suite.name}: {planned.device.device_id}"
            yield (
                f"{where}: planned {seconds:.0f} s ({times}) > budget "
                f"{budget_s:.0f} s; nothing is left out. Narrow it with -k or --set"
            )
