"""How long a case should take on a device: from an earlier run, else a guess that says it is one.

docs/matrix.md ("How long it takes") tells people how the numbers are made.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.kernel import Cost, Kernel, Pass
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.kernel_call import ask, refuse_if
from orchestrator.planning.kernel_contract import cost_fault, data_key_fault
from orchestrator.planning.matrix import Sampling

Basis = Literal["device", "soc", "guess"]

FIXED_S = 0.05
"""Buffers, guards and the records of a case that is small."""
PREPARE_S_PER_FLOP, PREPARE_S_PER_ELEMENT = 0.6e-9, 200e-9
"""Inputs, float64 reference and bounds on the host, measured on one core: attention of 8 heads × 1024 × 64
takes 1.0 ns for each of the device's flops, of 4 × 2048 × 128 0.5; blur 430 ns an element and scale 76."""


@dataclass(frozen=True, slots=True)
class Estimate:
    seconds: float
    basis: Basis
    """Measured on this device, measured on another device of its SoC, or guessed from the cost model."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Rough sustained rates of one class of device."""

    flops_per_s: float
    bytes_per_s: float
    compile_s: float
    """A program."""
    check_s: float
    """Comparing an element of the first verified output, in double and with its statistics."""
    same_s: float
    """Finding an element of a further output to be the same."""
    push_bytes_per_s: float = math.inf
    """Blobs on their way to the device."""


PROBE_GAIN = 25
"""A probe comes near the peak; measured on llvmpipe and lavapipe against naive attention."""

# Software: llvmpipe on 2 cores, naive attention 512 × 64 in 110 ms (docs/measurements). Comparing: copy of
# 64 MiB on the same 2 cores takes 126 ns an element in two replays, scale of 1 MiB 150 ns in twelve. The
# others are round numbers for a recent phone and a desktop GPU; the first run replaces them by its own times.
SOFTWARE = Speed(0.8e9, 4e9, 0.15, 120e-9, 5e-9)
PHONE = Speed(30e9, 10e9, 0.1, 360e-9, 15e-9, 20e6)
DESKTOP = Speed(1e12, 200e9, 0.1, 120e-9, 5e-9)


@dataclass(frozen=True, slots=True)
class Work:
    """What a case asks of a device, and of the host before."""

    cost: Cost
    programs: int
    """To compile: dispatches that differ in nothing but values and grid share one (decision 0019)."""
    data_key: str
    sent_bytes: int
    """Inputs, and references in float64."""
    checked: int
    """Elements of all outputs."""
    probe: bool = False
    """It is written to come near the device's peak."""

    @classmethod
    def of(cls, kernel: Kernel, case: Case) -> "Work":
        """Asks the kernel.

        Raises:
            KernelFolderError: its own code failed, or answers what its contract does not know.
        """
        cost = ask(case, "cost", lambda: kernel.cost(case))
        refuse_if(case, cost_fault(cost))
        key = ask(case, "data_key", lambda: kernel.data_key(case))
        refuse_if(case, data_key_fault(key))
        buffers = ask(case, "buffers", lambda: kernel.buffers(case))
        checked = sum(b.count for b in buffers if b.role in ("out", "inout"))
        read = sum(b.nbytes for b in buffers if b.role in ("in", "inout"))
        programs = _programs(ask(case, "passes", lambda: kernel.passes(case)))
        return cls(cost, programs, key, read + 8 * checked, checked, kernel.role != "op")

    @property
    def prepare_s(self) -> float:
        """On the host, once for all cases of a ``data_key``."""
        return self.cost.flops * PREPARE_S_PER_FLOP + self.checked * PREPARE_S_PER_ELEMENT


def _programs(passes: Sequence[Pass]) -> int:
    """Shader texts with their constants: what the templates see, without rendering them."""
    return len(
        {
            (p.template, p.workgroup, p.shared_bytes, tuple(p.constants.items()), *p.values, repr(p.context))
            for p in passes
        }
    )


class Estimator:
    """Estimates from the trials of a previous run where it has them."""

    def __init__(self, history: RunResults | None = None) -> None:
        self._on_device: dict[tuple[str, str], Trial] = {}
        self._on_soc: dict[tuple[str, str], Trial] = {}
        if history is None:
            return
        socs = {device.device_id: device.soc.name for device in history.devices}
        for trial in history.trials:
            if _says_something(trial):
                self._on_device[trial.device_id, trial.case_id] = trial
                self._on_soc[socs.get(trial.device_id, ""), trial.case_id] = trial

    def estimate(
        self,
        device: DeviceRecord,
        case: Case,
        work: Work,
        sampling: Sampling,
        *,
        compiled: bool = False,
        sent: bool = False,
    ) -> Estimate:
        """Device seconds of one case; compilation, rests and the timed warm-up included.

        Args:
            compiled: its shaders are in the driver's hands already.
            sent: so are its inputs and references.
        """
        case_id, api = case.case_id, str(case.axes.get("api", ""))
        aside_s = (sampling.rest_ms + (0 if device.software(api) else sampling.warmup_ms)) / 1e3
        speed = _speed(device, api)
        again = sampling.replays + sampling.idle_replays
        check_s = work.checked * (speed.check_s + again * speed.same_s)
        trial = self._on_device.get((device.device_id, case_id))
        if trial is not None:
            return Estimate(aside_s + _measured_s(trial, sampling, check_s), "device")
        trial = self._on_soc.get((device.soc.name, case_id))
        if trial is not None:
            return Estimate(aside_s + _measured_s(trial, sampling, check_s), "soc")
        flops_per_s = speed.flops_per_s * (PROBE_GAIN if work.probe else 1)
        once_s = max(work.cost.flops / flops_per_s, work.cost.bytes_moved / speed.bytes_per_s)
        compile_s = 0.0 if compiled else work.programs * speed.compile_s
        push_s = 0.0 if sent else work.sent_bytes / speed.push_bytes_per_s
        busy_s = FIXED_S + push_s + compile_s + once_s * (1 + sampling.sequences) + check_s
        return Estimate(aside_s + busy_s, "guess")


def _says_something(trial: Trial) -> bool:
    timed = trial.timing is not None and bool(trial.timing.wall_ns)
    return trial.verdict is not Verdict.INFRA and (timed or trial.duration_ms > 0)


def _measured_s(trial: Trial, sampling: Sampling, check_s: float) -> float:
    """Without rests and the timed warm-up: the GPU's times are known, those of the comparison are guessed."""
    timing = trial.timing
    if timing is None or not timing.wall_ns:
        return trial.duration_ms / 1e3
    once_ns = median(timing.wall_ns)
    slope_ns = timing.slope_n * timing.slope_ns
    total_ns = sum(timing.compile_ns) + timing.first_ns + once_ns * sampling.sequences + slope_ns
    return FIXED_S + total_ns / 1e9 + check_s


def _speed(device: DeviceRecord, api: str) -> Speed:
    if device.virtual or device.software(api):
        return SOFTWARE
    return PHONE if device.transport == "adb" else DESKTOP
