"""Names of variants on pages of changes: kernel and what varies; what a kernel's cases share is said once."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.analysis.tiles import TILE_AXIS
from orchestrator.domain.case import Case
from reports.labels import values_of

NO_WORDS = frozenset({"true", "false", "none"})
"""Values that say nothing without the name of their axis."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all cases of one kernel have in common."""

    kernel: str
    text: str
    """``seq=1024 kv_seq=seq mask=none``; empty: nothing."""


@dataclass(frozen=True, slots=True)
class VariantName:
    short: str
    """``attention_flash gles fp16_storage 64x16 rows=2``"""
    full: str
    """The kernel and every axis with its value."""
    pairs: tuple[tuple[str, str], ...] = ()
    """What is not shared: ``precision=fp32`` and as ``short`` has it, ``fp32``."""


@dataclass(slots=True)
class _Kernel:
    varying: list[str] = field(default_factory=list[str])
    bare: frozenset[str] = frozenset()
    """Axes whose values stand for themselves."""
    shared: str = ""


class Names:
    """The same name on every page of a night: what varies is looked at over all of its SoCs."""

    def __init__(self, cases: Mapping[str, Case]) -> None:
        """``cases``: case id → case, of all series and findings of the night."""
        self._cases = cases
        by_kernel: dict[str, list[dict[str, str]]] = defaultdict(list)
        for case in cases.values():
            by_kernel[case.kernel].append(values_of(case))
        self._kernels = {kernel: _look(own) for kernel, own in by_kernel.items()}
        self._made: dict[str, VariantName] = {}

    @property
    def shared(self) -> tuple[Shared, ...]:
        return tuple(Shared(kernel, own.shared) for kernel, own in sorted(self._kernels.items()))

    @property
    def labels(self) -> Mapping[str, str]:
        return {case_id: self.short(case_id) for case_id in self._cases}

    def kernel(self, case_id: str) -> str:
        """Empty: the case is not known any more."""
        case = self._cases.get(case_id)
        return case.kernel if case is not None else ""

    def of(self, case_id: str) -> VariantName:
        """A case that no result describes is called by its id."""
        made = self._made.get(case_id)
        if made is None:
            case = self._cases.get(case_id)
            made = VariantName(case_id, case_id) if case is None else self._name(case)
            self._made[case_id] = made
        return made

    def short(self, case_id: str) -> str:
        return self.of(case_id).short

    def full(self, case_id: str) -> str:
        return self.of(case_id).full

    def _name(self, case: Case) -> VariantName:
        own, values = self._kernels[case.kernel], values_of(case)
        pairs = tuple(
            (f"{axis}={values[axis]}", values[axis] if axis in own.bare else f"{axis}={values[axis]}")
            for axis in own.varying
            if axis in values
        )
        return VariantName(
            " ".join([case.kernel, *(shown for _, shown in pairs)]),
            " ".join([case.kernel, *(f"{axis}={value}" for axis, value in values.items())]),
            pairs,
        )


def _look(cases: list[dict[str, str]]) -> _Kernel:
    axes = list(dict.fromkeys(axis for values in cases for axis in values))
    varying: list[str] = []
    shared: list[str] = []
    for axis in axes:
        found = [values.get(axis) for values in cases]
        if len(set(found)) == 1:
            shared.append(f"{axis}={found[0]}")
            continue
        same = next((a for a in varying if [v.get(a) for v in cases] == found), None)
        if same is not None:
            shared.append(f"{axis}={same}")  # such as kv_seq, wherever it is always equal to seq
        else:
            varying.append(axis)
    words = Counter(word for axis in varying for word in {v[axis] for v in cases if axis in v})
    bare = frozenset(
        axis
        for axis in varying
        if all(_is_word(v[axis], axis) and words[v[axis]] == 1 for v in cases if axis in v)
    )
    return _Kernel(varying, bare, " ".join(shared))


def _is_word(value: str, axis: str) -> bool:
    return value not in NO_WORDS and (value[:1].isalpha() or axis == TILE_AXIS)
