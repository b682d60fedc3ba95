"""An SVG that is written piece by piece; texts are made visible and escaped, numbers rounded."""

from collections.abc import Sequence

from markupsafe import Markup, escape

from reports.text import visible

Point = tuple[float, float]


class Picture:
    """Looks come from classes of the page's style sheet, so that both themes and print share one drawing."""

    def __init__(self, width: float, height: float, kind: str) -> None:
        self._size = (width, height)
        self._kind = kind
        self._parts: list[str] = []

    def path(self, d: str, kind: str, title: str = "") -> None:
        inner = f"<title>{_safe(title)}</title>" if title else ""
        end = f">{inner}</path>" if inner else "/>"
        self._parts.append(f'<path class="{_safe(kind)}" d="{_safe(d)}"{end}')

    def line(self, points: Sequence[Point | None], kind: str) -> None:
        """Through the points; None interrupts it, and a point between two interruptions has no line."""
        self.path(polyline(points), kind)

    def rect(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        self._parts.append(
            f'<rect class="{_safe(kind)}" x="{short(x)}" y="{short(y)}" '
            f'width="{short(width)}" height="{short(height)}"/>'
        )

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        at = "" if anchor == "start" else f' text-anchor="{_safe(anchor)}"'
        named = f' class="{_safe(kind)}"' if kind else ""
        self._parts.append(f'<text{named} x="{short(x)}" y="{short(y)}"{at}>{_safe(text)}</text>')

    def titled(self, ident: str, title: str, description: str) -> Markup:
        """With a name and a description for who cannot see it; ``ident`` is unique in the page."""
        width, height = (short(n) for n in self._size)
        return Markup(
            f'<svg class="{_safe(self._kind)}" role="img" aria-labelledby="{_safe(ident)}-t {_safe(ident)}-d"'
            f' width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
            f'<title id="{_safe(ident)}-t">{_safe(title)}</title>'
            f'<desc id="{_safe(ident)}-d">{_safe(description)}</desc>{"".join(self._parts)}</svg>'
        )

    def silent(self) -> Markup:
        """Beside a text that says the same."""
        width, height = (short(n) for n in self._size)
        return Markup(
            f'<svg class="{_safe(self._kind)}" aria-hidden="true" viewBox="0 0 {width} {height}">'
            f"{''.join(self._parts)}</svg>"
        )

    def labelled(self, label: str, *, stretch: bool = False) -> Markup:
        """Small ones, of which a page has many: one text says all. ``stretch``: without keeping its shape."""
        width, height = (short(n) for n in self._size)
        shape = ' preserveAspectRatio="none"' if stretch else ""
        return Markup(
            f'<svg class="{_safe(self._kind)}" role="img" aria-label="{_safe(label)}" '
            f'viewBox="0 0 {width} {height}"{shape}>{"".join(self._parts)}</svg>'
        )


def polyline(points: Sequence[Point | None]) -> str:
    """``M1 2L3 4M7 8L9 9``"""
    d: list[str] = []
    pen = False
    for point in points:
        if point is not None:
            d.append(f"{'L' if pen else 'M'}{short(point[0])} {short(point[1])}")
        pen = point is not None
    return "".join(d)


def short(value: float) -> str:
    """One decimal, none where it is 0."""
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"


def _safe(text: str) -> str:
    return str(escape(visible(text)))
