"""Tile sizes as rows and columns, three times: before, after, change. Each cell holds its number."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from reports.changes.words import change, signed
from reports.numbers import decimals_for, duration, heat_step, milliseconds
from reports.svg.picture import Picture

CELL_W, CELL_H = 58, 26
LEFT, HEAD = 40, 30
DELTA_STEPS = (0.02, 0.05, 0.10, 0.25)
"""Ends of the shades of a change, the same for slower and faster."""
MAX_SIDE = 14

Cell = tuple[str, str]


@dataclass(frozen=True, slots=True)
class TileChange:
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[Cell, tuple[float, float]]
    """Latency before and after, ns; NaN: unknown."""
    marked: Cell
    """The finding's own tile."""


def tile_maps(ident: str, found: TileChange) -> Sequence[tuple[str, Markup]]:
    """Caption and map of before, after and change."""
    times = [t for pair in found.cells.values() for t in pair if math.isfinite(t) and t > 0]
    best = min(times)
    decimals = decimals_for(best)

    def at(which: int) -> Markup:
        picture = _frame(found)
        known = [pair[which] for pair in found.cells.values() if pair[which] > 0]
        fastest = min(known, default=math.nan)
        for cell, pair in found.cells.items():
            value = pair[which]
            if value > 0:
                step = heat_step(value / best)
                _cell(picture, found, cell, f"h{step}", f"t{step}", milliseconds(value, decimals))
        title = f"Median in ms by tile size {'before' if which == 0 else 'after'} the change"
        return picture.titled(f"{ident}-{which}", title, f"Fastest {duration(fastest)}. {_axes(found)}")

    picture = _frame(found)
    changes = {cell: math.log(b / a) for cell, (a, b) in found.cells.items() if a > 0 and b > 0}
    for cell, effect in changes.items():
        step = sum(abs(effect) > end for end in DELTA_STEPS)
        kind = f"{'slow' if effect > 0 else 'fast'}{step}" if step else "still"
        _cell(picture, found, cell, kind, f"t-{kind}", signed(effect))
    worst = max(changes, key=lambda c: abs(changes[c]), default=found.marked)
    most = change(changes.get(worst, math.nan))
    said = f"{len(changes)} tiles; most at {'x'.join(worst)}: {most}. {_axes(found)}"
    delta = picture.titled(f"{ident}-2", "Change by tile size", said)
    return (("before, ms", at(0)), ("after, ms", at(1)), ("change", delta))


def _frame(found: TileChange) -> Picture:
    picture = Picture(LEFT + CELL_W * len(found.columns) + 2, HEAD + CELL_H * len(found.rows) + 2, "heat")
    for i, column in enumerate(found.columns):
        picture.text(LEFT + CELL_W * (i + 0.5), HEAD - 8, column, "ax", "middle")
    for i, row in enumerate(found.rows):
        picture.text(LEFT - 8, HEAD + CELL_H * (i + 0.5) + 4, row, "ax", "end")
    return picture


def _cell(picture: Picture, found: TileChange, cell: Cell, kind: str, ink: str, text: str) -> None:
    x = LEFT + CELL_W * found.columns.index(cell[1])
    y = HEAD + CELL_H * found.rows.index(cell[0])
    picture.rect(x + 1, y + 1, CELL_W - 2, CELL_H - 2, kind)
    if cell == found.marked:
        picture.rect(x + 2, y + 2, CELL_W - 4, CELL_H - 4, "win")
    picture.text(x + CELL_W / 2, y + CELL_H / 2 + 4, text, ink, "middle")


def _axes(found: TileChange) -> str:
    rows, columns = ", ".join(found.rows), ", ".join(found.columns)
    return f"Rows {rows}, columns {columns}; the frame marks this finding's tile."
