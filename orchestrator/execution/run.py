"""One run from plan to results.json: prepare, write the manifest, dispatch, finish."""

import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from orchestrator import __version__
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import BrokerUnavailable, KernelFolderError
from orchestrator.domain.gate import FailOn
from orchestrator.domain.job import CanaryJob
from orchestrator.domain.moment import utc_now
from orchestrator.domain.names import Lane
from orchestrator.domain.results import CaseInfo, MissedNight, Missing, RunInfo, RunResults
from orchestrator.execution.dispatch import Dispatcher, DispatchLimits
from orchestrator.execution.farm import Farm, Watcher
from orchestrator.execution.manifest import Manifest, Outcome, Pool, Unprepared, cases_of, pool_id
from orchestrator.execution.measured_precision import measured_precision
from orchestrator.execution.preparation import Preparation
from orchestrator.execution.prepare import Degenerate, Prepared, Refused, prepare_all, prepare_each
from orchestrator.execution.run_folder import RunFolder, last_attempts, previous_results
from orchestrator.execution.spirv import SpirvCompiler
from orchestrator.planning.canary import PlannedCanary
from orchestrator.planning.kernel_call import ask
from orchestrator.planning.kernel_files import kernels_digest
from orchestrator.planning.kernel_folder import LoadedKernel
from orchestrator.planning.matrix import Sampling
from orchestrator.planning.plan import Plan, PlannedCase
from orchestrator.planning.render import VULKAN
from orchestrator.storage.blobs import BlobStore


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person or CI asked for, as given; kept with the run so that it can be repeated."""

    matrix: str = ""
    """Empty: ``matrix.yaml`` of the working folder."""
    kernels: tuple[str, ...] = ()
    selection: str = ""
    overrides: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    max_slowdown: float | None = None
    fail_on: FailOn = "wrong"
    probes: bool = True
    confirm: bool = True
    night: str = ""
    """Id of the night that it is the run of."""
    missed_nights: tuple[MissedNight, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """What a run needs beside the plan."""

    run_id: str
    out: Path
    blob_store: str
    lane: Lane
    command: str
    missing: list[Missing]
    """Devices that were asked for or listed and cannot be used."""
    spirv_cache: Path
    """Compiled modules of this machine, kept from run to run."""
    user: str = ""
    """Who asks."""
    asked: Asked = Asked()


def start_run(
    plan: Plan,
    kernels: Mapping[str, LoadedKernel],
    request: Request,
    on_prepared: Callable[[int], None],
) -> RunFolder:
    """Make everything that the workers need and write the run's manifest.

    A case whose shader does not compile here is a failed trial of each of its devices already.

    Raises:
        KernelFolderError: a kernel's own code failed, or no canary can be made.
    """
    manifest = _planned(plan, kernels, request)
    outcomes: list[Outcome] = []
    for outcome in prepared(manifest, kernels, request.spirv_cache):
        outcomes.append(outcome)
        on_prepared(len(outcomes))
    refused = list(manifest.refused(outcomes, utc_now()))
    return RunFolder.create(request.out, manifest.with_outcomes(outcomes), refused)


def begin_run(
    plan: Plan, kernels: Mapping[str, LoadedKernel], request: Request
) -> tuple[RunFolder, Preparation]:
    """Write the run's manifest, and prepare what the workers need while they work on what is ready.

    Raises:
        KernelFolderError: a kernel's own code failed, or no canary can be made.
    """
    manifest = _planned(plan, kernels, request)
    folder = RunFolder.create(request.out, manifest)
    return folder, Preparation(folder, manifest, prepared(manifest, kernels, request.spirv_cache), utc_now)


def go_on_preparing(
    folder: RunFolder, kernels: Mapping[str, LoadedKernel], spirv_cache: Path
) -> Preparation | None:
    """For a run that was ended before all of it was prepared; None where the kernels are others by now: what
    they would make is not what was planned."""
    manifest = folder.manifest()
    if kernels_digest(kernels) != manifest.kernels_digest:
        return None
    return Preparation(folder, manifest, prepared(manifest, kernels, spirv_cache), utc_now)


def prepared(manifest: Manifest, kernels: Mapping[str, LoadedKernel], spirv_cache: Path) -> Iterator[Outcome]:
    """What becomes of each case that the manifest has no job for, in an order that gives all devices work.

    Raises:
        KernelFolderError: a kernel's own code failed or contradicts itself.
    """
    sampling = {u.case_id: u.sampling for waiting in manifest.unprepared.values() for u in waiting}
    cases = {i: (manifest.planned.cases[i].case, sampling[i]) for i in cases_of(manifest.unprepared)}
    store, compiler = BlobStore(manifest.blob_store), SpirvCompiler(spirv_cache)
    for case_id, found in prepare_each(store, compiler, kernels, cases):
        match found:
            case Prepared(info, job):
                yield Outcome(case_id, info, job)
            case Refused(info, message):
                yield Outcome(case_id, info, refused=message)
            case Degenerate(reason):
                yield Outcome(case_id, degenerate=reason)


def _planned(plan: Plan, kernels: Mapping[str, LoadedKernel], request: Request) -> Manifest:
    """The manifest of a run with its canaries ready and no job made yet."""
    compiler = SpirvCompiler(request.spirv_cache)
    groups = [*plan.devices, *plan.anywhere]
    watched = {c.case_id: (c.case, plan.sampling_of(c.case_id)) for g in groups for c in g.canaries}
    canaries = prepare_all(BlobStore(request.blob_store), compiler, kernels, watched, lambda _: None)
    infos = _facts(plan, kernels)
    infos |= {i: p.info for i, p in canaries.items() if not isinstance(p, Degenerate)}
    ran = [c.case for g in groups for c in [*g.cases, *g.canaries]]
    vulkan = any(case.axes.get("api") == VULKAN for case in ran)
    results = RunResults(
        run=RunInfo(
            run_id=request.run_id,
            suite=plan.suite.name,
            started_at=utc_now(),
            tilefarm=__version__,
            host=platform.node(),
            command=request.command,
            commit=git_commit(Path(request.asked.matrix or "matrix.yaml").resolve().parent),
            matrix=request.asked.matrix,
            kernels=list(request.asked.kernels),
            selection=request.asked.selection,
            overrides=list(request.asked.overrides),
            wanted=list(request.asked.wanted),
            max_slowdown=request.asked.max_slowdown,
            fail_on=request.asked.fail_on,
            probes=request.asked.probes,
            confirm=request.asked.confirm,
            night=request.asked.night,
            missed_nights=list(request.asked.missed_nights),
            phones_per_soc=plan.suite.min_phones_per_soc,
            compiler=compiler.version if vulkan else "",
        ),
        devices=[d.device for d in plan.devices],
        cases=infos,
        trials=[],
        pruned=list(plan.pruned),
        excluded=list(plan.excluded),
        missing=[*request.missing, *plan.missing],
        expectations=list(plan.expectations),
    )
    devices = {d.device.device_id: d.device for d in plan.devices}
    unprepared = {i: _unprepared(plan, d.cases, d.device) for i, d in zip(devices, plan.devices, strict=True)}
    pools: dict[str, Pool] = {}
    for number, group in enumerate(plan.anywhere):
        target, first = pool_id(number, group.soc), devices[group.devices[0]]
        found = [_canary(c, first, canaries[c.case_id]) for c in group.canaries]
        pools[target] = Pool(group.soc, group.devices, [], found)
        unprepared[target] = _unprepared(plan, group.cases, first)
    return Manifest(
        results,
        {device_id: [] for device_id in devices},
        request.blob_store,
        request.lane,
        {
            d.device.device_id: [_canary(c, d.device, canaries[c.case_id]) for c in d.canaries]
            for d in plan.devices
        },
        pools=pools,
        able=plan.able,
        reserve=plan.reserve,
        user=request.user,
        unprepared={target: waiting for target, waiting in unprepared.items() if waiting},
        kernels_digest=kernels_digest(kernels),
    )


def carry_out(
    folder: RunFolder,
    broker: Farm,
    watcher: Watcher,
    out: Path,
    absent: Mapping[str, str] | None = None,
    limits: DispatchLimits | None = None,
    preparation: Preparation | None = None,
) -> RunResults:
    """Dispatch what has no verdict yet and write results.json; used for a new run and for a resumed one.

    Args:
        absent: devices that will not come back during this run, and why.
        preparation: prepares what the folder has no jobs for yet; without it, that is missing.

    Raises:
        KernelFolderError: a kernel's own code failed while others ran; the folder can be resumed.
    """
    manifest = folder.manifest()
    run = manifest.planned.run
    with folder.only_one():
        dispatcher = Dispatcher(broker, folder, platform.node(), limits=limits)
        lost = dispatcher.run(folder.unfinished(), watcher, absent, preparation)
        manifest = folder.manifest()
        trials = last_attempts(folder.trials().values())
        wanted = [
            (
                trials[target, job.case_id].device_id if (target, job.case_id) in trials else target,
                job.case_id,
            )
            for target, jobs in manifest.wanted.items()
            for job in jobs
        ]
        previous = previous_results(out, run.suite, run.run_id, wanted)
        store = BlobStore(manifest.blob_store)
        used = dict.fromkeys(d.device_id for d in manifest.planned.devices)
        used |= dict.fromkeys(t.device_id for t in trials.values())
        degraded: Sequence[str] = ()
        with suppress(BrokerUnavailable):  # the results are here
            degraded = broker.degraded(used, run.started_at)
        return folder.finish(
            previous.run.run_id if previous else "",
            utc_now(),
            lost,
            partial(measured_precision, store),
            degraded,
        )


def git_commit(folder: Path) -> str:
    """Commit of the matrix's folder, ``+dirty`` with uncommitted changes; empty outside git."""
    try:
        answers = [
            subprocess.run(
                ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=True
            ).stdout
            for words in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain"])
        ]
    except (OSError, subprocess.SubprocessError):
        return ""
    return answers[0].strip() + ("+dirty" if answers[1].strip() else "")


def _unprepared(plan: Plan, cases: Iterable[PlannedCase], device: DeviceRecord) -> list[Unprepared]:
    return [
        Unprepared(
            c.case_id,
            round(c.estimate.seconds * 1000),
            device.software(str(c.case.axes.get("api", ""))),
            plan.sampling_of(c.case_id),
        )
        for c in cases
    ]


def _canary(
    planned: PlannedCanary, device: DeviceRecord, prepared: Prepared | Degenerate | Refused
) -> CanaryJob:
    """
    Raises:
        KernelFolderError: it does not compile or its reference has no signal: it could vouch for nothing.
    """
    if isinstance(prepared, Refused):
        raise KernelFolderError(
            f"kernels/{planned.case.kernel}: the canary does not compile: {prepared.message}"
        )
    if isinstance(prepared, Degenerate):
        raise KernelFolderError(f"kernels/{planned.case.kernel}: the canary has no signal: {prepared.reason}")
    job = prepared.job
    waiting = Unprepared(
        job.case_id, round(planned.estimate.seconds * 1000), device.software(job.api), Sampling()
    )
    return CanaryJob(waiting.job(job), planned.factor, planned.expected)


def _facts(plan: Plan, kernels: Mapping[str, LoadedKernel]) -> dict[str, CaseInfo]:
    """What is known of cases without preparing them, so that the report can name each.

    Raises:
        KernelFolderError: a kernel's own code failed.
    """
    found: dict[str, CaseInfo] = {}
    for case_id, case in plan.cases.items():
        kernel = kernels[case.kernel].kernel
        if kernel.invalid(case) is not None:
            continue
        passes = ask(case, "passes", partial(kernel.passes, case))
        found[case_id] = CaseInfo(
            case=case,
            code_hash="",
            cost=ask(case, "cost", partial(kernel.cost, case)),
            tolerance={},
            workgroup=passes[0].workgroup,
            shared_bytes=max(p.shared_bytes for p in passes),
            dispatches=len(passes),
            role=kernel.role,
        )
    return found
