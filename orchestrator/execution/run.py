"""One run from plan to results.json: prepare, write the manifest, dispatch, finish."""

import platform
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from orchestrator import __version__
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.job import CanaryJob, CaseJob
from orchestrator.domain.names import Lane
from orchestrator.domain.results import CaseInfo, MissedNight, Missing, Pruned, RunInfo, RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.dispatch import Dispatcher, DispatchLimits
from orchestrator.execution.farm import Farm, Watcher
from orchestrator.execution.measured_precision import measured_precision
from orchestrator.execution.prepare import Degenerate, Prepared, Refused, prepare_all
from orchestrator.execution.run_folder import (
    Manifest,
    Pool,
    RunFolder,
    last_attempts,
    pool_id,
    previous_results,
)
from orchestrator.execution.spirv import SpirvCompiler
from orchestrator.planning.canary import PlannedCanary
from orchestrator.planning.estimate import Estimate
from orchestrator.planning.kernel_folder import LoadedKernel
from orchestrator.planning.plan import Plan
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
    probes: bool = True
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
    planned_ids = {c.case_id for p in [*plan.devices, *plan.anywhere] for c in [*p.cases, *p.canaries]}
    cases = {i: (case, plan.sampling_of(i)) for i, case in plan.cases.items() if i in planned_ids}
    compiler = SpirvCompiler(request.spirv_cache)
    prepared = prepare_all(BlobStore(request.blob_store), compiler, kernels, cases, on_prepared)
    jobs: dict[str, list[CaseJob]] = {}
    canaries: dict[str, list[CanaryJob]] = {}
    pruned = list(plan.pruned)
    refused: list[Trial] = []
    for device in plan.devices:
        device_id = device.device.device_id
        jobs[device_id] = []
        for planned in device.cases:
            match prepared[planned.case_id]:
                case Prepared(job=job):
                    jobs[device_id].append(_for_device(job, device.device, planned.estimate))
                case Refused(info, message):
                    refused.append(_refused(request.run_id, device_id, info, message))
                case Degenerate(reason):
                    pruned.append(Pruned(device_id, planned.case_id, Verdict.INVALID, [reason]))
        canaries[device_id] = [
            _canary(planned, device.device, prepared[planned.case_id]) for planned in device.canaries
        ]
    pools = _pools(plan, prepared, pruned, request.run_id, refused)
    infos = {i: p.info for i, p in prepared.items() if not isinstance(p, Degenerate)}
    vulkan = any(info.case.axes.get("api") == VULKAN for info in infos.values())
    infos |= _undispatched(plan, kernels, infos)
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
            probes=request.asked.probes,
            night=request.asked.night,
            missed_nights=list(request.asked.missed_nights),
            phones_per_soc=plan.suite.min_phones_per_soc,
            compiler=compiler.version if vulkan else "",
        ),
        devices=[d.device for d in plan.devices],
        cases=infos,
        trials=[],
        pruned=pruned,
        excluded=list(plan.excluded),
        missing=[*request.missing, *plan.missing],
        expectations=list(plan.expectations),
    )
    manifest = Manifest(
        results,
        jobs,
        request.blob_store,
        request.lane,
        canaries,
        pools=pools,
        able=plan.able,
        reserve=plan.reserve,
        user=request.user,
    )
    return RunFolder.create(request.out, manifest, refused)


def carry_out(
    folder: RunFolder,
    broker: Farm,
    watcher: Watcher,
    out: Path,
    absent: Mapping[str, str] | None = None,
    limits: DispatchLimits | None = None,
) -> RunResults:
    """Dispatch what has no verdict yet and write results.json; used for a new run and for a resumed one.

    Args:
        absent: devices that will not come back during this run, and why.
    """
    manifest = folder.manifest()
    run = manifest.planned.run
    with folder.only_one():
        dispatcher = Dispatcher(broker, folder, platform.node(), limits=limits)
        lost = dispatcher.run(folder.unfinished(), watcher, absent)
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
        return folder.finish(
            previous.run.run_id if previous else "", utc_now(), lost, partial(measured_precision, store)
        )


def _pools(
    plan: Plan,
    prepared: Mapping[str, Prepared | Degenerate | Refused],
    pruned: list[Pruned],
    run_id: str,
    refused: list[Trial],
) -> dict[str, Pool]:
    """Cases that one of several phones is to do; what cannot be dispatched is told of the first of them."""
    devices = {d.device.device_id: d.device for d in plan.devices}
    pools: dict[str, Pool] = {}
    for number, group in enumerate(plan.anywhere):
        first = devices[group.devices[0]]
        jobs: list[CaseJob] = []
        for planned in group.cases:
            match prepared[planned.case_id]:
                case Prepared(job=job):
                    jobs.append(_for_device(job, first, planned.estimate))
                case Refused(info, message):
                    refused.append(_refused(run_id, first.device_id, info, message))
                case Degenerate(reason):
                    pruned.append(Pruned(first.device_id, planned.case_id, Verdict.INVALID, [reason]))
        canaries = [_canary(planned, first, prepared[planned.case_id]) for planned in group.canaries]
        pools[pool_id(number, group.soc)] = Pool(group.soc, group.devices, jobs, canaries)
    return pools


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


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


def _refused(run_id: str, device_id: str, info: CaseInfo, message: str) -> Trial:
    """No driver saw it, so ``driver`` stays empty and expectations are matched against the device's own."""
    return Trial(
        run_id=run_id,
        device_id=device_id,
        case_id=info.case.case_id,
        attempt=1,
        verdict=Verdict.COMPILE_FAILED,
        reason=message.partition("\n")[0],
        code_hash=info.code_hash,
        started_at=utc_now(),
        duration_ms=0,
        log=message,
    )


def _for_device(job: CaseJob, device: DeviceRecord, estimate: Estimate) -> CaseJob:
    """The clock of a software driver is its host's, which no idle GPU lets fall: no warm-up by time there."""
    profile = device.profile(job.api)
    software = profile is not None and profile.software
    return replace(
        job, estimate_ms=round(estimate.seconds * 1000), warmup_ms=0 if software else job.warmup_ms
    )


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
    return CanaryJob(_for_device(prepared.job, device, planned.estimate), planned.factor, planned.expected)


def _undispatched(
    plan: Plan, kernels: Mapping[str, LoadedKernel], known: Mapping[str, CaseInfo]
) -> dict[str, CaseInfo]:
    """Facts of cases that were pruned everywhere, so that the report can name them."""
    found: dict[str, CaseInfo] = {}
    for case_id, case in plan.cases.items():
        if case_id in known:
            continue
        kernel = kernels[case.kernel].kernel
        if kernel.invalid(case) is not None:
            continue
        passes = kernel.passes(case)
        found[case_id] = CaseInfo(
            case=case,
            code_hash="",
            cost=kernel.cost(case),
            tolerance={},
            workgroup=passes[0].workgroup,
            shared_bytes=max(p.shared_bytes for p in passes),
            dispatches=len(passes),
            role=kernel.role,
        )
    return found
