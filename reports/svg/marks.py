"""Outlines of marks: series and states are told apart by shape, colour only repeats it."""

from markupsafe import Markup

from reports.svg.picture import Picture, short

SHAPES = ("circle", "square", "triangle", "diamond", "cross", "plus", "down")
_OUTLINES = {
    "circle": "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "square": "m-3-3h6v6h-6z",
    "triangle": "m0-4l3.8 7h-7.6z",
    "diamond": "m0-4.4l4.4 4.4l-4.4 4.4l-4.4-4.4z",
    "cross": "m-3.4-3.4l6.8 6.8m-6.8 0l6.8-6.8",
    "plus": "m-4 0h8m-4-4v8",
    "down": "m0 4l3.8-7h-7.6z",
}


def mark(shape: str, x: float, y: float) -> str:
    """Path of one mark around (x, y)."""
    return f"M{short(x)} {short(y)}{_OUTLINES[shape]}"


def legend_mark(shape: str, kind: str) -> Markup:
    """As the charts draw it; the text beside it says what it stands for."""
    picture = Picture(12, 12, "k")
    picture.path(mark(shape, 6, 6), kind)
    return picture.silent()
