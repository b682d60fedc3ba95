"""How long a case should take on a device: from an earlier run, else a guess that says it is one."""

from dataclasses import dataclass
from statistics import median
from typing import Literal

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.kernel import Cost
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.matrix import Suite

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


# Software: llvmpipe on 2 cores, naive attention 512 × 64 in 110 ms (docs/measurements). The others are
# round numbers for a recent phone and a desktop GPU; the first run replaces them by its own times.
_SOFTWARE_SPEED = _Speed(0.8e9, 4e9, 0.15)
_PHONE_SPEED = _Speed(30e9, 10e9, 0.1)
_DESKTOP_SPEED = _Speed(1e12, 200e9, 0.1)


class Estimator:
    """Estimates for one suite, from the trials of a previous run where it has them."""

    def __init__(self, suite: Suite, history: RunResults | None = None) -> None:
        self._suite = suite
        self._on_device: dict[tuple[str, str], float] = {}
        self._on_soc: dict[tuple[str, str], float] = {}
        if history is None:
            return
        socs = {device.device_id: device.soc.name for device in history.devices}
        for trial in history.trials:
            seconds = self._measured_s(trial)
            if seconds is not None:
                self._on_device[trial.device_id, trial.case_id] = seconds
                self._on_soc[socs.get(trial.device_id, ""), trial.case_id] = seconds

    def estimate(self, device: DeviceRecord, api: str, case_id: str, cost: Cost, shaders: int) -> Estimate:
        """Device seconds of one case, compilation included; ``shaders`` is its number of passes."""
        seconds = self._on_device.get((device.device_id, case_id))
        if seconds is not None:
            return Estimate(seconds, "device")
        seconds = self._on_soc.get((device.soc.name, case_id))
        if seconds is not None:
            return Estimate(seconds, "soc")
        speed = _speed(device, api)
        once_s = max(cost.flops / speed.flops_per_s, cost.bytes_moved / speed.bytes_per_s)
        return Estimate(FIXED_S + shaders * speed.compile_s + once_s * (1 + self._sequences), "guess")

    @property
    def _sequences(self) -> int:
        return self._suite.warmup + self._suite.repeats + self._suite.replays

    def _measured_s(self, trial: Trial) -> float | None:
        if trial.verdict is Verdict.INFRA:
            return None
        timing = trial.timing
        if timing is None or not timing.wall_ns:
            return trial.duration_ms / 1e3 if trial.duration_ms > 0 else None
        once_ns = median(timing.wall_ns)
        slope_ns = timing.slope_n * timing.slope_ns
        total_ns = sum(timing.compile_ns) + timing.first_ns + once_ns * self._sequences + slope_ns
        return FIXED_S + total_ns / 1e9


def _speed(device: DeviceRecord, api: str) -> _Speed:
    profile = device.profile(api)
    if device.virtual or (profile is not None and profile.software):
        return _SOFTWARE_SPEED
    return _PHONE_SPEED if device.transport == "adb" else _DESKTOP_SPEED
