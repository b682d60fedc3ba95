"""The canary of a device and API: which case vouches for its batches, and how fast it has to be."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.kernel import Kernel
from orchestrator.domain.profile import Profile
from orchestrator.domain.results import RunResults
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
    expected_ns: int
    """From the run before; 0: the device's first canary of the run sets it."""


def factor(kernel: Kernel, profile: Profile) -> float:
    """The kernel's ``latency_factor`` (default 5), five times that on a software driver.

    Raises:
        KernelFolderError: it is no number above 1.
    """
    given: object = getattr(kernel, "latency_factor", DEFAULT_FACTOR)
    if not isinstance(given, int | float) or not math.isfinite(given) or given <= 1:
        raise KernelFolderError(f"kernels/{kernel.name}: latency_factor is {given!r}; give a number above 1")
    return float(given) * (SOFTWARE if profile.software else 1.0)


def expected_ns(device: DeviceRecord, profile: Profile, history: RunResults | None) -> int:
    """Median latency of the earlier run's canaries on this device, API and driver; 0 without any.

    Another driver makes another device of it: what the old one took says nothing.
    """
    if history is None:
        return 0
    latencies: Sequence[int] = [
        ns
        for trial in history.trials
        if trial.canary is not None
        and trial.device_id == device.device_id
        and trial.driver == driver_text(profile)
        and _api(history, trial.case_id) == profile.api
        for ns in (trial.canary.before_ns, trial.canary.after_ns)
        if ns > 0
    ]
    return round(median(latencies)) if latencies else 0


def driver_text(profile: Profile) -> str:
    """As trials name the driver that executed them (``Trial.driver``)."""
    return f"{profile.renderer}; {profile.version}"


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
