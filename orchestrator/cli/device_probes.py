"""The probes that ``tilefarm devices`` runs: seconds a device, on the same path as a run, kept nowhere."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.cli.fleet import Fleet
from orchestrator.cli.live import LiveProgress
from orchestrator.cli.options import BUILT_IN_KERNELS
from orchestrator.cli.output import news, say
from orchestrator.domain.case import AxisValue
from orchestrator.domain.kernel import Kernel
from orchestrator.domain.precision import Precision
from orchestrator.domain.results import RunResults
from orchestrator.domain.settings import Settings
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.run import Request, carry_out, start_run
from orchestrator.execution.run_folder import new_run_id
from orchestrator.execution.spirv import cache_folder
from orchestrator.planning.kernel_folder import load_kernels
from orchestrator.planning.matrix import Block, Matrix, Sampling, Suite
from orchestrator.planning.plan import build_plan

SUITE = "devices"
GROUPS = 256
"""Workgroups of `fma`: a few milliseconds on a software driver, all of a phone busy."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A probe without a right answer."""

    device_id: str
    api: str
    label: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class Probed:
    precision: list[Precision]
    failed: list[Failed]
    lacking: dict[tuple[str, str], list[str]]
    """(device, API) → what cannot be asked for there, with the reason: ``fp16: lacks float16``."""

    @property
    def complete(self) -> bool:
        """No result was kept from us by infrastructure."""
        return all(f.verdict is not Verdict.INFRA for f in self.failed)


def quick_suite(kernels: Mapping[str, Kernel]) -> Suite:
    """Every precision of each API, and how fast it is."""
    probe, fma = kernels["precision_probe"], kernels["fma"]
    once = Sampling(repeats=1, warmup=0, deadline_s=60)
    rate: dict[str, AxisValue] = {"groups": GROUPS}
    return Suite(
        SUITE,
        (
            _block(probe, {}, once, api=("gles", "vulkan"), asked=("highp", "mediump", "pack_half")),
            _block(probe, {}, once, api=("vulkan",), asked=("precise", "fp16", "storage16")),
            _block(fma, rate, None, api=("gles", "vulkan"), hint=("highp", "mediump")),
            _block(fma, rate, None, api=("vulkan",), hint=("precise",)),
            _block(fma, rate, None, api=("vulkan",), precision=("fp16",)),
        ),
        sampling=Sampling(repeats=10, warmup=1, deadline_s=60, warmup_ms=300),
    )


def probe_devices(fleet: Fleet, settings: Settings) -> Probed:
    """Run the probes on every device of the fleet, while its workers are there."""
    loaded = load_kernels(BUILT_IN_KERNELS)
    kernels = {name: found.kernel for name, found in loaded.items()}
    matrix = Matrix("tilefarm devices", {SUITE: quick_suite(kernels)})
    plan = build_plan(matrix, SUITE, kernels, fleet.devices, probes=False)
    with tempfile.TemporaryDirectory(prefix="tilefarm-devices-") as kept:
        out = Path(kept)
        shared = settings.broker or settings.blobs  # workers elsewhere read the farm's blob store only
        request = Request(
            run_id=new_run_id(SUITE),
            out=out,
            blob_store=settings.blob_store() if shared else (out / "blobs").as_uri(),
            lane="ondemand",
            command="tilefarm devices",
            missing=[],
            spirv_cache=cache_folder(settings),
        )
        say("measuring precision and speed")
        folder = start_run(plan, loaded, request, lambda _: None)
        shown = {d.device.device_id: (d.device.name, len(d.cases), d.seconds) for d in plan.devices}
        with LiveProgress(news, shown, fleet.revive) as watcher:
            return probed(carry_out(folder, fleet.broker, watcher, out))


def probed(results: RunResults) -> Probed:
    failed: list[Failed] = []
    for trial in results.trials:
        case = results.cases[trial.case_id].case
        if trial.verdict is not Verdict.PASS:
            api = str(case.axes["api"])
            failed.append(Failed(trial.device_id, api, case.label, trial.verdict, trial.reason))
    for lost in results.missing:
        case = results.cases[lost.case_id].case
        api = str(case.axes["api"])
        failed.append(Failed(lost.device_id, api, case.label, Verdict.INFRA, lost.why))
    devices = {d.device_id: d for d in results.devices}
    lacking: dict[tuple[str, str], list[str]] = {}
    for pruned in results.pruned:
        axes = results.cases[pruned.case_id].case.axes
        api = str(axes["api"])
        if "asked" in axes and devices[pruned.device_id].profile(api) is not None:
            said = f"{axes['asked']}: {'; '.join(pruned.reasons)}"
            lacking.setdefault((pruned.device_id, api), []).append(said)
    return Probed(results.precision, failed, lacking)


def _block(
    kernel: Kernel,
    workload: Mapping[str, AxisValue],
    sampling: Sampling | None,
    **axes: tuple[AxisValue, ...],
) -> Block:
    """All points of one kernel: these values, defaults elsewhere."""
    defaults = {axis.name: axis.default for axis in kernel.axes}
    return Block(
        where=SUITE,
        line=0,
        kernel=kernel.name,
        op=kernel.op,
        workloads=({name: (value,) for name, value in workload.items()},),
        axes={n: axes.get(n, () if d is None else (d,)) for n, d in defaults.items()},
        inputs=kernel.distributions[:1],
        sampling=sampling,
    )
