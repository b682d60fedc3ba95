"""Where a finding lies: among its tile sizes, under its device's roofline, on its output."""

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from orchestrator.analysis.numerics import coordinates
from orchestrator.analysis.roofline import Ceilings, ceilings, place
from orchestrator.analysis.tiles import TILE_AXIS, tile_coordinates
from orchestrator.domain.case import Case, axis_text
from orchestrator.domain.finding import Findings, SeriesRow
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Numerics, Trial
from reports.changes.model import Chart, Entry
from reports.numbers import percent
from reports.svg.errormap import ErrorPlane, error_map
from reports.svg.roofpoint import RoofPoint, roof_point, roof_words
from reports.svg.tiles import MAX_SIDE, TileChange, tile_maps

Family = tuple[str, ...]
MIN_TILES = 2


class Places:
    """Groups series and trials once, so that a finding costs what it shows."""

    def __init__(self, results: RunResults, found: Findings) -> None:
        self._results, self._found = results, found
        self._ceilings: dict[str, Ceilings] = {}

    @cached_property
    def _families(self) -> dict[Family, list[tuple[tuple[str, str], SeriesRow]]]:
        """Series that differ in nothing but their tile."""
        made: dict[Family, list[tuple[tuple[str, str], SeriesRow]]] = defaultdict(list)
        for row in self._found.series:
            info = self._results.cases.get(row.case_id)
            cell = _tile(info.case) if info is not None else None
            if info is not None and cell is not None:
                made[_family(row.soc, info.case)].append((cell, row))
        return made

    @cached_property
    def _trials(self) -> dict[tuple[str, str], Trial]:
        return {(t.device_id, t.case_id): t for t in self._results.trials}

    def tiles(self, entry: Entry) -> tuple[Chart, ...]:
        """Before, after and change, where the kernel has other tiles with times."""
        finding = entry.finding
        info = self._results.cases.get(finding.case_id)
        cell = _tile(info.case) if info is not None else None
        if info is None or cell is None or finding.kind != "speed":
            return ()
        cells: dict[tuple[str, str], tuple[float, float]] = {}
        for at, row in self._families[_family(finding.soc, info.case)]:
            if row.latency_ns > 0:
                known = math.isfinite(row.effect) and row.verdict not in ("new", "missing")
                cells[at] = (row.latency_ns / math.exp(row.effect) if known else math.nan, row.latency_ns)
        rows = sorted({r for r, _ in cells}, key=_extents)
        columns = sorted({c for _, c in cells}, key=_extents)
        if len(cells) < MIN_TILES or cell not in cells or max(len(rows), len(columns)) > MAX_SIDE:
            return ()
        change = TileChange(tuple(rows), tuple(columns), cells, cell)
        return tuple(Chart(caption, picture) for caption, picture in tile_maps(f"{entry.anchor}-m", change))

    def roof(self, entry: Entry, device: str) -> Chart | None:
        """Of the phone that shows it most, where its probes ran tonight."""
        finding = entry.finding
        info = self._results.cases.get(finding.case_id)
        phone = next((p for p in finding.phones if p.device_id == device), None)
        if info is None or phone is None or finding.kind != "speed":
            return None
        found = self._ceilings_of(device)
        before, after = (
            place(found, info.cost, info.case, ns) if _known(ns) else None
            for ns in (phone.before_ns, phone.after_ns)
        )
        shown = after or before
        if shown is None or not math.isfinite(shown.intensity) or shown.intensity <= 0:
            return None
        api = found.of(str(info.case.axes.get("api", "")))
        point = RoofPoint(
            intensity=shown.intensity,
            before=before.flops_per_s if before else math.nan,
            after=after.flops_per_s if after else math.nan,
            share_before=before.share if before else math.nan,
            share_after=after.share if after else math.nan,
            ceiling=shown.ceiling,
            bandwidth=api.dram.bytes_per_s if api.dram else 0.0,
            peak=max(
                (r.flops_per_s for r in api.rates if r.name == shown.ceiling or shown.binds == "memory"),
                default=0.0,
            ),
        )
        return Chart("Roofline", roof_point(f"{entry.anchor}-r", point), roof_words(point))

    def errors(self, entry: Entry, device: str) -> Chart | None:
        """Of tonight's trial, where anything is outside or differs between executions."""
        trial = self._trials.get((device, entry.finding.case_id))
        info = self._results.cases.get(entry.finding.case_id)
        if trial is None or info is None:
            return None
        for output in trial.outputs:
            shape = info.output_shape.get(output.buffer, [])
            worst = _at(output.worst.index if output.worst else None, shape)
            first = _at(output.first_bad.index if output.first_bad else None, shape)
            box = _box(output)
            if len(shape) < 2 or (worst is None and first is None and box is None):
                continue
            tile = _tile(info.case)
            plane = ErrorPlane(
                rows=shape[-2],
                columns=shape[-1],
                tile_rows=_extents(tile[0])[0] if tile else 0,
                tile_columns=_extents(tile[1])[0] if tile and info.case.op in ("gemm", "sgemm") else 0,
                worst=worst,
                first=first,
                box=box,
                told=_told(output, shape),
            )
            return Chart(f"Output {output.buffer}", error_map(f"{entry.anchor}-e", plane), plane.told)
        return None

    def _ceilings_of(self, device: str) -> Ceilings:
        if device not in self._ceilings:
            self._ceilings[device] = ceilings(self._results.trials, self._results.cases, device)
        return self._ceilings[device]


def _told(output: Numerics, shape: Sequence[int]) -> str:
    """With the whole coordinates: a map has the last two only."""
    share = percent(output.failing / output.count, 2) if output.count else "–"
    said = f"{output.failing} of {output.count} elements ({share}) outside the tolerance"
    if output.differs is not None:
        said += f"; {output.differs.count} differ between executions"
    named = (("worst", output.worst), ("first", output.first_bad))
    known = {n: coordinates(e.index, shape) for n, e in named if e is not None}
    at = [f"the {n} at [{', '.join(map(str, where))}]" for n, where in known.items() if where is not None]
    return f"{said}; {', '.join(at)}." if at else f"{said}."


def _at(index: int | None, shape: Sequence[int]) -> tuple[int, int] | None:
    found = None if index is None else coordinates(index, shape)
    return None if found is None or len(found) < 2 else (found[-2], found[-1])


def _box(output: Numerics) -> tuple[tuple[int, int], tuple[int, int]] | None:
    differs = output.differs
    if differs is None or len(differs.box) < 2:
        return None
    (top, bottom), (left, right) = differs.box[-2:]
    return (top, left), (bottom, right)


def _family(soc: str, case: Case) -> Family:
    axes = sorted((n, axis_text(v)) for n, v in case.axes.items() if n != TILE_AXIS)
    return (soc, case.kernel, case.workload_id, *(f"{n}={v}" for n, v in axes))


def _tile(case: Case) -> tuple[str, str] | None:
    return tile_coordinates(axis_text(case.axes.get(TILE_AXIS, "")))


def _extents(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("x"))


def _known(ns: float) -> bool:
    return math.isfinite(ns) and ns > 0
