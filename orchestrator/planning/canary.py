"""The canary of a device and API: which case vouches for its batches, and how fast it has to be."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.job import CanaryLatency
from orchestrator.domain.kernel import Kernel
from orchestrator.domain.profile import Profile
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Canary
from orchestrator.planning.estimate import Estimate

DEFAULT_FACTOR = 5.0
SOFTWARE = 5.0
"""A software driver shares its processor with everything else on the machine: so many times more leeway."""


@dataclass(frozen=True, slots=True)
class PlannedCanary:
    case_id: str
    case: Case
    api: str
    estimate: Estimate
    """Of one execution before or after a batch."""
    factor: float
    """Latency may be so many times above or below the expected one."""
    expected: CanaryLatency
    """From the run before."""

    @property
    def expected_ns(self) -> int:
        """For people, by the GPU's clock where there is one; 0: the device's first canary of the run sets it,
        as it does where the canary's code has changed since."""
        return self.expected.gpu_ns or self.expected.wall_ns


def factor(kernel: Kernel, profile: Profile) -> float:
    """The kernel's ``latency_factor`` (default 5), five times that on a software driver.

    Raises:
        KernelFolderError: it is no number above 1.
    """
    given: object = getattr(kernel, "latency_factor", DEFAULT_FACTOR)
    if not isinstance(given, int | float) or not math.isfinite(given) or given <= 1:
        raise KernelFolderError(f"kernels/{kernel.name}: latency_factor is {given!r}; give a number above 1")
    return float(given) * (SOFTWARE if profile.software else 1.0)


def expected(device: DeviceRecord, profile: Profile, history: RunResults | None) -> CanaryLatency:
    """Median latencies of the earlier run's canaries on this device, API and driver, for each clock.

    Another driver makes another device of it: what the old one took says nothing. Nor does what was measured
    by a clock that nobody noted. Where a run holds two codes of the canary (resumed), the later one counts.
    """
    if history is None:
        return CanaryLatency()
    seen = [
        canary
        for trial in history.trials
        if (canary := trial.canary) is not None
        and canary.clock
        and trial.device_id == device.device_id
        and trial.driver == profile.driver_text
        and _api(history, trial.case_id) == profile.api
    ]
    if not seen:
        return CanaryLatency()
    seen = [c for c in seen if c.code_hash == seen[-1].code_hash]
    gpu, wall = (_median_ns(c for c in seen if c.clock == clock) for clock in ("gpu", "wall"))
    return CanaryLatency(seen[-1].code_hash, gpu, wall)


def _median_ns(canaries: Iterable[Canary]) -> int:
    """0 without any."""
    latencies = [ns for c in canaries for ns in (c.before_ns, c.after_ns) if ns > 0]
    return round(median(latencies)) if latencies else 0


def _api(history: RunResults, case_id: str) -> str:
    info = history.cases.get(case_id)
    return "" if info is None else str(info.case.axes.get("api", ""))


def canary_cases(cases: Mapping[str, Case], kernels: Mapping[str, Kernel]) -> dict[str, str]:
    """Case id → API of the canaries among the cases of ``probes:``."""
    return {
        case_id: str(case.axes.get("api", ""))
        for case_id, case in cases.items()
        if kernels[case.kernel].role == "canary"
    }
