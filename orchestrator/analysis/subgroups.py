"""Failures by the subgroup size that ran: a tile geometry that holds for one size only (field case G1-07)."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.analysis.outcome import JudgedTrial, Outcome

_FAILED = frozenset({Outcome.FAILURE, Outcome.EXPECTED_FAILURE})
_COUNTED = _FAILED | {Outcome.PASSED, Outcome.UNEXPECTEDLY_PASSED}


@dataclass(frozen=True, slots=True)
class SizeCount:
    size: int
    """Invocations that execute together: as the case asked, else counted by a probe; 0 where none could."""
    failed: int
    total: int


@dataclass(frozen=True, slots=True)
class KernelBySize:
    """One kernel over all devices and APIs of the run."""

    kernel: str
    sizes: tuple[SizeCount, ...]
    """Most failures first; an unknown size last."""

    @property
    def sentence(self) -> str:
        """``attention_flash: 2 of 229 fail at subgroup 128, 0 of 229 at 64``."""
        first, *rest = self.sizes
        words = [f"{first.failed} of {first.total} fail at {_at(first.size, 'subgroup ')}"]
        words += [f"{s.failed} of {s.total} at {_at(s.size)}" for s in rest]
        return f"{self.kernel}: {', '.join(words)}"


def failures_by_subgroup(trials: Iterable[JudgedTrial]) -> tuple[KernelBySize, ...]:
    """Kernels that failed somewhere and ran at more than one known size, in order seen."""
    groups: dict[str, dict[int, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for item in trials:
        if item.probe or item.outcome not in _COUNTED:
            continue
        groups[item.info.case.kernel][_size(item)].append(item.outcome in _FAILED)
    found: list[KernelBySize] = []
    for kernel, by_size in groups.items():
        sizes = [SizeCount(size, sum(failed), len(failed)) for size, failed in by_size.items()]
        if len([s for s in sizes if s.size]) > 1 and any(s.failed for s in sizes):
            sizes.sort(key=lambda s: (not s.size, -s.failed / s.total, -s.size))
            found.append(KernelBySize(kernel, tuple(sizes)))
    return tuple(found)


def _size(item: JudgedTrial) -> int:
    """A variant that fixes its size runs at no other, whatever the device's default is."""
    axes = item.info.case.axes
    fixed = axes.get("subgroup", 0)
    if isinstance(fixed, int) and fixed > 0:
        return fixed
    profile = item.device.profile(str(axes.get("api", "")))
    return 0 if profile is None else profile.subgroup.measured


def _at(size: int, word: str = "") -> str:
    return f"{word}{size}" if size else "a size that no probe counted"
