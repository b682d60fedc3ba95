"""Tile sizes as rows and columns of a heatmap: axis ``tile``, value ``BRxBC``."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.analysis.clocks import clock_moved
from orchestrator.analysis.outcome import JudgedTrial
from orchestrator.analysis.stats import timing_stats
from orchestrator.domain.case import Axes, axis_text
from orchestrator.domain.results import Pruned, RunResults
from orchestrator.domain.verdict import Verdict

TILE_AXIS = "tile"
GRID_AXES = ("api", "precision")
"""Axes that separate heatmaps; a cell is the best over all others (layout, vector, hint, …)."""


@dataclass(frozen=True, slots=True)
class TileCell:
    """One tile size: the fastest correct variant, else why there is none."""

    median_ns: float | None
    case_id: str
    verdict: Verdict | None
    """Verdict of the variants that were tried when none passed; None when all were pruned."""
    why: str
    """Reason when there is no time; else the other axes of the fastest variant."""
    clock_moved: bool = False
    """While it was timed; so only where it moved in every variant of this tile."""


@dataclass(frozen=True, slots=True)
class TileGrid:
    """One kernel on one workload and device, per api and precision."""

    kernel: str
    workload_label: str
    fixed: str
    """The axes that are the same in every cell, as text."""
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], TileCell]


def tile_coordinates(text: str) -> tuple[str, str] | None:
    """``64x16`` → row ``64``, column ``16``; a third extent joins the column; None for other texts."""
    found = re.fullmatch(r"(\d{1,5})x(\d{1,5}(?:x\d{1,5})*)", text)
    return None if found is None else (found[1], found[2])


def tile_grids(results: RunResults, judged: Iterable[JudgedTrial], device_id: str) -> list[TileGrid]:
    """Every grid of a device with at least three measured tile sizes, in order of the trials."""
    families: dict[tuple[str, ...], list[JudgedTrial]] = defaultdict(list)
    for item in judged:
        if item.device.device_id != device_id or item.probe:
            continue
        if tile_coordinates(_tile(item.info.case.axes)):
            families[_family(item.info.case.kernel, item.info.case.workload_id, item.info.case.axes)].append(
                item
            )
    dropped: dict[tuple[str, ...], list[Pruned]] = defaultdict(list)
    for pruned in results.pruned:
        info = results.cases.get(pruned.case_id)
        if pruned.device_id == device_id and info is not None and tile_coordinates(_tile(info.case.axes)):
            dropped[_family(info.case.kernel, info.case.workload_id, info.case.axes)].append(pruned)
    grids = (_grid(results, items, dropped.get(key, [])) for key, items in families.items())
    return [g for g in grids if sum(c.median_ns is not None for c in g.cells.values()) >= 3]


def _grid(results: RunResults, items: list[JudgedTrial], dropped: list[Pruned]) -> TileGrid:
    cells: dict[tuple[str, str], TileCell] = {}
    for item in items:
        at = tile_coordinates(_tile(item.info.case.axes))
        if at is not None:
            cells[at] = _better(cells.get(at), _cell(item))
    for pruned in dropped:
        at = tile_coordinates(_tile(results.cases[pruned.case_id].case.axes))
        if at is not None and at not in cells:
            cells[at] = TileCell(None, pruned.case_id, None, ", ".join(pruned.reasons))
    case = items[0].info.case
    return TileGrid(
        kernel=case.kernel,
        workload_label=case.workload_label,
        fixed=" ".join(f"{n}={axis_text(case.axes[n])}" for n in GRID_AXES if n in case.axes),
        rows=tuple(sorted({r for r, _ in cells}, key=_extents)),
        columns=tuple(sorted({c for _, c in cells}, key=_extents)),
        cells=cells,
    )


def _cell(item: JudgedTrial) -> TileCell:
    case, trial = item.info.case, item.trial
    stats = timing_stats(trial.timing) if trial.verdict is Verdict.PASS else None
    if stats is None:
        return TileCell(None, case.case_id, trial.verdict, trial.reason)
    others = {k: v for k, v in case.axes.items() if k != TILE_AXIS and k not in GRID_AXES}
    return TileCell(
        stats.median_ns,
        case.case_id,
        trial.verdict,
        " ".join(f"{k}={axis_text(v)}" for k, v in others.items()),
        clock_moved(trial),
    )


def _better(old: TileCell | None, new: TileCell) -> TileCell:
    if old is None or old.median_ns is None:
        return new if old is None or new.median_ns is not None else old
    if new.median_ns is None:
        return old
    return min(old, new, key=lambda cell: (cell.clock_moved, cell.median_ns or 0.0))


def _family(kernel: str, workload_id: str, axes: Axes) -> tuple[str, ...]:
    return (kernel, workload_id, *(axis_text(axes.get(name, "")) for name in GRID_AXES))


def _tile(axes: Axes) -> str:
    return axis_text(axes.get(TILE_AXIS, ""))


def _extents(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("x"))
