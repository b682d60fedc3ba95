"""Which cases a device cannot run, decided from its probed profile before anything is sent to it.

Reasons are machine-readable: ``NAME NEEDED > LIMIT`` with both numbers, or ``lacks FEATURE``. A limit that
the profile does not declare is not checked here; the runner checks again on the device.
"""

from dataclasses import dataclass
from typing import Literal

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.kernel import Kernel
from orchestrator.domain.profile import Profile
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.kernel_call import ask


@dataclass(frozen=True, slots=True)
class Needs:
    """What a case asks of a device."""

    api: str
    limits: dict[str, int]
    """Profile limit → largest value over the passes."""
    features: frozenset[str]
    passes: int


@dataclass(frozen=True, slots=True)
class Drop:
    verdict: Literal[Verdict.UNSUPPORTED, Verdict.INVALID]
    reasons: tuple[str, ...]


def check(kernel: Kernel, case: Case) -> Needs | Drop:
    """What the case needs, or the reason why no device could run it.

    Raises:
        KernelFolderError: the kernel's own code failed, or it has no ``api`` axis.
    """
    invalid = ask(case, "invalid", lambda: kernel.invalid(case))
    if invalid is not None:
        return Drop(Verdict.INVALID, (invalid,))
    return ask(case, "passes, buffers or features", lambda: _needs(kernel, case))


def prune(needs: Needs | Drop, device: DeviceRecord) -> Drop | None:
    """Why the device cannot run the case, or None when it can."""
    if isinstance(needs, Drop):
        return needs
    profile = device.profile(needs.api)
    if profile is None:
        return Drop(Verdict.UNSUPPORTED, (f"lacks api {needs.api}",))
    reasons = shortfalls(needs, profile)
    return Drop(Verdict.UNSUPPORTED, reasons) if reasons else None


def shortfalls(needs: Needs, profile: Profile) -> tuple[str, ...]:
    """Every limit that is too low and every feature that is missing."""
    low = [
        f"{name} {needed} > {profile.limits[name]}"
        for name, needed in needs.limits.items()
        if name in profile.limits and needed > profile.limits[name]
    ]
    missing = [f"lacks {name}" for name in sorted(needs.features) if profile.features.get(name) is not True]
    return (*low, *missing)


def _needs(kernel: Kernel, case: Case) -> Needs:
    sizes = {buffer.name: buffer.nbytes for buffer in kernel.buffers(case)}
    limits: dict[str, int] = {}

    def need(name: str, value: int) -> None:
        limits[name] = max(limits.get(name, 0), value)

    passes = kernel.passes(case)
    for step in passes:
        x, y, z = step.workgroup
        need("shared_bytes", step.shared_bytes)
        need("invocations", x * y * z)
        for axis, size, groups in zip("xyz", step.workgroup, step.grid, strict=True):
            need(f"group_{axis}", size)
            need(f"count_{axis}", groups)
        need("storage_bindings", len(step.buffers))
        need("storage_bytes", max((sizes[name] for name in step.buffers), default=0))
    api = case.axes.get("api")
    if not isinstance(api, str):
        raise KernelFolderError(f"kernels/{kernel.name}: no axis api; declare it in kernel.py")
    return Needs(api, limits, kernel.features(case), len(passes))
