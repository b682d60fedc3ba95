"""Short names of cases within one report: what all cases share is said once, not in every row."""

from collections.abc import Iterable, Mapping

from orchestrator.analysis.tiles import TILE_AXIS
from orchestrator.domain.case import Case, axis_text


def compact(values: Iterable[tuple[str, str]]) -> str:
    """Words stand for themselves, numbers and booleans keep their axis: ``highp 32x16 column vector=4``."""
    words: list[str] = []
    for name, value in values:
        alone = value not in ("true", "false") and (value[:1].isalpha() or name == TILE_AXIS)
        words.append(value if alone else f"{name}={value}")
    return " ".join(words)


class Labels:
    """``attention_flash precision=fp32 tile=64x8 seq=512``, with ``common`` said elsewhere."""

    def __init__(self, cases: Iterable[Case]) -> None:
        every = [values_of(case) for case in cases]
        self.common: Mapping[str, str] = {
            name: value
            for name, value in (every[0] if every else {}).items()
            if all(values.get(name) == value for values in every)
        }

    def short(self, case: Case) -> str:
        return " ".join([case.kernel, *self._own(values_of(case))])

    def workload(self, case: Case) -> str:
        """Op, shape and inputs."""
        return " ".join([case.op, *self._own(_workload(case))])

    def _own(self, values: Mapping[str, str]) -> list[str]:
        return [f"{name}={value}" for name, value in values.items() if self.common.get(name) != value]


def _workload(case: Case) -> dict[str, str]:
    values = {name: axis_text(value) for name, value in case.workload.items()}
    return values | {"inputs": case.inputs, "seed": str(case.seed)}


def values_of(case: Case) -> dict[str, str]:
    """Axes, shape and inputs by name, as texts, in the order of the matrix."""
    return {name: axis_text(value) for name, value in case.axes.items()} | _workload(case)
