"""Which cases a device cannot run, decided from its probed profile before anything is sent to it.

Reasons are machine-readable: ``NAME NEEDED > LIMIT`` with both numbers, ``subgroup_size NEEDED != SIZE``,
``lacks FEATURE``, or ``lacks matrix SHAPE`` where there are cooperative matrices, but none of that shape. A
limit that the profile does not declare counts as the minimum that GLES 3.1 and Vulkan guarantee: our runner's
profiles declare all, and what is not known to fit is not sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.kernel import Kernel, Pass
from orchestrator.domain.profile import Profile
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.kernel_call import ask, refuse_if
from orchestrator.planning.kernel_contract import declared_fault, invalid_fault, words_fault
from orchestrator.planning.slangc import MISSING, SLANG_SUFFIX, find_slangc
from orchestrator.planning.suggest import printable

GUARANTEED: Mapping[str, int] = {
    "shared_bytes": 16_384,
    "invocations": 128,
    "group_x": 128,
    "group_y": 128,
    "group_z": 64,
    "count_x": 65_535,
    "count_y": 65_535,
    "count_z": 65_535,
    "storage_bytes": 1 << 27,
    "storage_bindings": 4,
}
"""What every implementation supports at least: OpenGL ES 3.1 ("Implementation Dependent Values") and Vulkan
1.0 ("Required Limits") name the same numbers."""

_NOT_DECLARED = " (not declared: the guaranteed minimum)"
_MATRICES = "cooperative_matrix"
_WHY = 120
"""Characters of a driver's message in a reason."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a case asks of a device."""

    api: str
    limits: dict[str, int]
    """Profile limit → largest value over the passes."""
    features: frozenset[str]
    passes: int
    subgroup_sizes: frozenset[int] = frozenset()
    """Sizes that its passes must run with."""
    matrices: frozenset[str] = frozenset()
    """Shapes of cooperative matrices."""


@dataclass(frozen=True, slots=True)
class Drop:
    verdict: Literal[Verdict.UNSUPPORTED, Verdict.INVALID]
    reasons: tuple[str, ...]


def check(kernel: Kernel, case: Case) -> Needs | Drop:
    """What the case needs, or the reason why no device could run it.

    Raises:
        KernelFolderError: the kernel's own code failed, or answers what its contract does not know.
    """
    invalid = ask(case, "invalid", lambda: kernel.invalid(case))
    refuse_if(case, invalid_fault(invalid))
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
    """Every limit that is too low, subgroup size that it cannot run, feature and shape that is missing."""
    low = [
        f"{name} {needed} > {limit}{'' if name in profile.limits else _NOT_DECLARED}"
        for name, needed in needs.limits.items()
        if needed > (limit := profile.limits.get(name, GUARANTEED[name]))
    ]
    sizes = [why for size in sorted(needs.subgroup_sizes) if (why := _subgroup_shortfall(size, profile))]
    missing = [
        _lacks(name, profile) for name in sorted(needs.features) if profile.features.get(name) is not True
    ]
    return (*low, *sizes, *missing, *_missing_shapes(needs, profile))


def _missing_shapes(needs: Needs, profile: Profile) -> list[str]:
    """Only where the feature itself is there: without it no shape is, and one reason says so."""
    if _MATRICES in needs.features and profile.features.get(_MATRICES) is not True:
        return []
    return [f"lacks matrix {shape}" for shape in sorted(needs.matrices - set(profile.matrices))]


def _subgroup_shortfall(size: int, profile: Profile) -> str:
    """Why passes cannot run with exactly this size; empty when they can.

    Without size control a device runs its own size, which is the advertised one only if a probe that
    counted did not find another (field case G1-07: an advertised size can lie).
    """
    facts = profile.subgroup
    own = facts.measured or facts.advertised
    if size == facts.advertised == own:
        return ""
    if profile.features.get("subgroup_size_control") is True and facts.max:
        if size < facts.min:
            return f"subgroup_size {size} < {facts.min}"
        return f"subgroup_size {size} > {facts.max}" if size > facts.max else ""
    if not facts.advertised:
        return "lacks subgroups"
    return f"subgroup_size {size} != {own if size == facts.advertised else facts.advertised}"


def _lacks(feature: str, profile: Profile) -> str:
    """An advertised feature whose probe failed is missing all the same, and says why (field case G1-23)."""
    why = printable(" ".join(profile.unproven.get(feature, "").split()))[:_WHY]
    return f"lacks {feature}" + (f" (advertised; its probe: {why})" if why else "")


def _needs(kernel: Kernel, case: Case) -> Needs | Drop:
    buffers, passes = kernel.buffers(case), kernel.passes(case)
    features, matrices = kernel.features(case), kernel.matrices(case)
    refuse_if(case, declared_fault(buffers, passes))
    refuse_if(case, words_fault("features", features) or words_fault("matrices", matrices))
    sizes = {buffer.name: buffer.nbytes for buffer in buffers}
    limits: dict[str, int] = {}

    def need(name: str, value: int) -> None:
        limits[name] = max(limits.get(name, 0), value)

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
    wrong = tuple(why for step in passes if (why := _wrong_geometry(step)))
    if wrong:
        return Drop(Verdict.INVALID, tuple(dict.fromkeys(wrong)))
    if any(step.template.endswith(SLANG_SUFFIX) for step in passes) and find_slangc() is None:
        return Drop(Verdict.INVALID, (MISSING,))
    subgroups = frozenset(step.subgroups.size for step in passes if step.subgroups is not None)
    return Needs(api, limits, features, len(passes), subgroups, matrices)


def _wrong_geometry(step: Pass) -> str:
    """Why the tiling breaks with the very subgroup size that it was made for; no device could run it."""
    if step.subgroups is None:
        return ""
    size, count = step.subgroups.size, step.subgroups.count
    if size < 1 or size & (size - 1):
        return f"subgroup_size {size} is no power of two"
    x, y, z = step.workgroup
    invocations = x * y * z
    return "" if invocations == size * count else f"subgroups {count} != {invocations / size:g}"
