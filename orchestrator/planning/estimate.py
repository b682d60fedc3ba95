"""How long a case should take on a device: from an earlier run, else a guess that says it is one."""

from dataclasses import dataclass
from statistics import median
from typing import Literal

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.kernel import Cost
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.matrix import Sampling

Basis = Literal["device", "soc", "guess"]

FIXED_S = 0.05
"""A case's transfers, buffers and comparison on the device."""


@dataclass(frozen=True, slots=True)
class Estimate:
    seconds: float
    basis: Basis
    """Measured on this device, measured on another device of its SoC, or guessed from the cost model."""


@dataclass(frozen=True, slots=True)
class _Speed:
    """Rough sustained rates of one class of device."""

    flops_per_s: float
    bytes_per_s: float
    compile_s: float
    """A shader."""


PROBE_GAIN = 25
"""A probe comes near the peak; measured on llvmpipe and lavapipe against naive attention."""

# Software: llvmpipe on 2 cores, naive attention 512 × 64 in 110 ms (docs/measurements). The others are
# round numbers for a recent phone and a desktop GPU; the first run replaces them by its own times.
_SOFTWARE_SPEED = _Speed(0.8e9, 4e9, 0.15)
_PHONE_SPEED = _Speed(30e9, 10e9, 0.1)
_DESKTOP_SPEED = _Speed(1e12, 200e9, 0.1)


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
        api: str,
        case_id: str,
        cost: Cost,
        shaders: int,
        sampling: Sampling,
        *,
        probe: bool = False,
    ) -> Estimate:
        """Device seconds of one case; compilation, rests and the timed warm-up included.

        Args:
            shaders: its number of passes.
            probe: it is written to come near the device's peak.
        """
        aside_s = (sampling.rest_ms + (0 if _software(device, api) else sampling.warmup_ms)) / 1e3
        trial = self._on_device.get((device.device_id, case_id))
        if trial is not None:
            return Estimate(aside_s + _measured_s(trial, sampling), "device")
        trial = self._on_soc.get((device.soc.name, case_id))
        if trial is not None:
            return Estimate(aside_s + _measured_s(trial, sampling), "soc")
        speed = _speed(device, api)
        flops_per_s = speed.flops_per_s * (PROBE_GAIN if probe else 1)
        once_s = max(cost.flops / flops_per_s, cost.bytes_moved / speed.bytes_per_s)
        busy_s = FIXED_S + shaders * speed.compile_s + once_s * (1 + sampling.sequences)
        return Estimate(aside_s + busy_s, "guess")


def _says_something(trial: Trial) -> bool:
    timed = trial.timing is not None and bool(trial.timing.wall_ns)
    return trial.verdict is not Verdict.INFRA and (timed or trial.duration_ms > 0)


def _measured_s(trial: Trial, sampling: Sampling) -> float:
    """Without rests and the timed warm-up."""
    timing = trial.timing
    if timing is None or not timing.wall_ns:
        return trial.duration_ms / 1e3
    once_ns = median(timing.wall_ns)
    slope_ns = timing.slope_n * timing.slope_ns
    total_ns = sum(timing.compile_ns) + timing.first_ns + once_ns * sampling.sequences + slope_ns
    return FIXED_S + total_ns / 1e9


def _speed(device: DeviceRecord, api: str) -> _Speed:
    if device.virtual or _software(device, api):
        return _SOFTWARE_SPEED
    return _PHONE_SPEED if device.transport == "adb" else _DESKTOP_SPEED


def _software(device: DeviceRecord, api: str) -> bool:
    profile = device.profile(api)
    return profile is not None and profile.software
