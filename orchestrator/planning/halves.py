"""Where a tile fits into shared memory in 16 bits and not in 32: what half precision makes possible."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.domain.case import AxisValue, Case, axis_text
from orchestrator.domain.device import DeviceRecord
from orchestrator.planning.prune import GUARANTEED, Drop, Needs

_WIDTH_AXES = ("precision", "halves")
_FULL = "fp32"
_LIMIT = "shared_bytes"


@dataclass(frozen=True, slots=True)
class HalfFit:
    """One tile of one kernel on one device: points that differ in nothing but the width of numbers."""

    device_id: str
    kernel: str
    api: str
    variant: str
    """What people call the tile: ``tile 64x32``, or all other axes of a kernel without that axis."""
    precision: str
    half_bytes: int
    full_bytes: int
    limit_bytes: int
    points: int
    """Workloads, inputs and further axes for which the numbers are the same."""

    @property
    def sentence(self) -> str:
        return (
            f"{self.kernel} ({self.api}) {self.variant}: {self.precision} fits ({self.half_bytes} of "
            f"{self.limit_bytes} {_LIMIT}), {_FULL} does not ({self.full_bytes})"
        )


def half_fits(
    cases: Mapping[str, Case],
    needs: Mapping[str, Needs | Drop],
    device: DeviceRecord,
    runs: Iterable[str],
) -> list[HalfFit]:
    """Of one device; ``runs`` are the ids of the cases that it can run."""
    full: dict[_Point, int] = {}
    for case_id, case in cases.items():
        need = needs[case_id]
        if case.axes.get("precision") == _FULL and isinstance(need, Needs):
            bytes_ = need.limits.get(_LIMIT, 0)
            if bytes_ > _limit(device, need.api):
                full[_point(case)] = bytes_
    found: dict[tuple[str, str, str, str, int, int, int], int] = {}
    for case_id in runs:
        case, need = cases[case_id], needs[case_id]
        precision = case.axes.get("precision")
        full_bytes = full.get(_point(case))
        if full_bytes is None or not isinstance(need, Needs) or not isinstance(precision, str):
            continue
        half_bytes, limit = need.limits.get(_LIMIT, 0), _limit(device, need.api)
        key = (case.kernel, need.api, _variant(case), precision, half_bytes, full_bytes, limit)
        found[key] = found.get(key, 0) + 1
    return [HalfFit(device.device_id, *key, points) for key, points in found.items()]


_Point = tuple[object, ...]


def _point(case: Case) -> _Point:
    """Everything but the width of numbers."""
    axes = frozenset((n, v) for n, v in case.axes.items() if n not in _WIDTH_AXES)
    return (case.kernel, frozenset(case.workload.items()), axes, case.inputs, case.seed)


def _variant(case: Case) -> str:
    tile: AxisValue | None = case.axes.get("tile")
    if tile is not None:
        return f"tile {axis_text(tile)}"
    return " ".join(f"{n}={axis_text(v)}" for n, v in case.axes.items() if n not in ("api", *_WIDTH_AXES))


def _limit(device: DeviceRecord, api: str) -> int:
    profile = device.profile(api)
    return 0 if profile is None else profile.limits.get(_LIMIT, GUARANTEED[_LIMIT])
