"""Names of the variants of one workload: kernel, API, precision and what varies among the kernel's own."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from orchestrator.domain.best import LeftOut, Variant
from orchestrator.domain.case import AxisValue, axis_text
from reports.labels import compact

ALWAYS = ("api", "precision")
IN_TITLE = 4
"""Parameters; all of them stand below it."""


class VariantNames:
    def __init__(self, variants: Iterable[Variant | LeftOut]) -> None:
        every = list(variants)
        seen: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for variant in every:
            for axis, value in variant.axes.items():
                seen[variant.kernel][axis].add(axis_text(value))
        self._short: dict[str, str] = {}
        self._full: dict[str, str] = {}
        for v in every:
            axes = {axis: axis_text(value) for axis, value in v.axes.items()}
            varies = seen[v.kernel]
            kept = [(a, x) for a, x in axes.items() if a in ALWAYS or len(varies[a]) > 1]
            self._short[v.case_id] = f"{v.kernel} {compact(kept)}".rstrip()
            self._full[v.case_id] = " ".join([v.kernel, *(f"{a}={x}" for a, x in axes.items())])

    def short(self, case_id: str) -> str:
        return self._short.get(case_id, case_id)

    def full(self, case_id: str) -> str:
        return self._full.get(case_id, case_id)


def workload_title(op: str, workload: Mapping[str, AxisValue]) -> str:
    """``attention seq=1024 head_dim=64 heads=8``: whole numbers above 1 and what is set, and no ``kv_seq``
    that is like ``seq``."""
    words: list[str] = []
    numbers: set[int] = set()
    for name, value in workload.items():
        if type(value) is int:
            if value > 1 and not ("_" in name and value in numbers):
                words.append(f"{name}={value}")
            numbers.add(value)
        elif value is True:
            words.append(name)
    return " ".join([op, *words[:IN_TITLE]])


def parameters(workload: Mapping[str, AxisValue]) -> str:
    return " ".join(f"{name}={axis_text(value)}" for name, value in workload.items())
