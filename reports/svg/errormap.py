"""An output as a plane with its tile grid, and where on it errors are: what the device reported of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from reports.svg.marks import mark
from reports.svg.picture import Picture

SIDE = 260
LEFT, TOP = 54, 24
MAX_LINES = 64
"""Tile lines in one direction; a finer grid would be grey."""


@dataclass(frozen=True, slots=True)
class ErrorPlane:
    """The last two dimensions of an output; what lies in other ones is told in ``told``."""

    rows: int
    columns: int
    tile_rows: int
    """0: no tile grid."""
    tile_columns: int
    worst: tuple[int, int] | None
    first: tuple[int, int] | None
    box: tuple[tuple[int, int], tuple[int, int]] | None
    """Smallest and largest coordinates of the elements that differ between executions."""
    told: str
    """One sentence: how many are outside, where the worst one is."""


def error_map(ident: str, found: ErrorPlane) -> Markup:
    scale_x = SIDE / max(found.columns, 1)
    scale_y = min(SIDE / max(found.rows, 1), max(scale_x, 60 / max(found.rows, 1)))
    if found.rows > found.columns:
        scale_x = min(scale_x, max(scale_y, 60 / max(found.columns, 1)))
    width, height = found.columns * scale_x, found.rows * scale_y
    picture = Picture(LEFT + width + 12, TOP + height + 12, "errors")
    picture.rect(LEFT, TOP, width, height, "plane")
    if found.tile_columns and found.columns / found.tile_columns <= MAX_LINES:
        for column in range(found.tile_columns, found.columns, found.tile_columns):
            picture.path(f"M{LEFT + column * scale_x:.1f} {TOP}v{height:.1f}", "grid")
    if found.tile_rows and found.rows / found.tile_rows <= MAX_LINES:
        for row in range(found.tile_rows, found.rows, found.tile_rows):
            picture.path(f"M{LEFT} {TOP + row * scale_y:.1f}h{width:.1f}", "grid")
    if found.box is not None:
        (top, left), (bottom, right) = found.box
        picture.rect(
            LEFT + left * scale_x, TOP + top * scale_y, max((right - left + 1) * scale_x, 3),
            max((bottom - top + 1) * scale_y, 3), "box",
        )  # fmt: skip
    for shape, kind, point in (("cross", "worst", found.worst), ("circle", "first", found.first)):
        if point is not None:
            x, y = LEFT + (point[1] + 0.5) * scale_x, TOP + (point[0] + 0.5) * scale_y
            picture.path(mark(shape, x, y), kind, f"{kind}: row {point[0]}, column {point[1]}")
    for text, x, y, anchor in (
        ("0", LEFT - 6, TOP + 10, "end"), (str(found.rows - 1), LEFT - 6, TOP + height, "end"),
        ("0", LEFT, TOP - 7, "start"), (str(found.columns - 1), LEFT + width, TOP - 7, "end"),
    ):  # fmt: skip
        picture.text(x, y, text, "ax", anchor)
    grid = f"Tiles of {found.tile_rows} rows." if found.tile_rows else ""
    return picture.titled(ident, "Where the output is wrong", f"{found.told} {_places(found)} {grid}".strip())


def _places(found: ErrorPlane) -> str:
    names: Sequence[tuple[str, tuple[int, int] | None]] = (("worst", found.worst), ("first", found.first))
    return " ".join(f"The {n} at row {p[0]}, column {p[1]}." for n, p in names if p is not None)
