"""A page as a reader's browser parses it: elements, attributes, text, problems of structure."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"meta", "input", "br", "link", "img", "hr"})
_SVG_VOID = frozenset({"path", "rect"})


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    pieces: list[str] = field(default_factory=list[str])
    children: list["Element"] = field(default_factory=list["Element"])

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def all(self, tag: str) -> list["Element"]:
        found = [c for c in self.children if c.tag == tag]
        return found + [d for c in self.children for d in c.all(tag)]

    def every(self) -> list["Element"]:
        return [self, *(d for c in self.children for d in c.every())]


class Page(HTMLParser):
    """Tree of a page; ``problems`` lists tags that are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.problems: list[str] = []
        self._open = [self.root]
        self.feed(html)
        self.close()
        self.problems += [f"<{e.tag}> is never closed" for e in self._open[1:]]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {k: v or "" for k, v in attrs})
        self._open[-1].children.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _SVG_VOID:
            self.problems.append(f"<{tag}/>")
        self._open[-1].children.append(Element(tag, {k: v or "" for k, v in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if self._open[-1].tag != tag:
            self.problems.append(f"</{tag}> closes <{self._open[-1].tag}>")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.pieces.append(data)

    def all(self, tag: str) -> list[Element]:
        return self.root.all(tag)

    def every(self) -> list[Element]:
        return self.root.every()[1:]

    def by_id(self, name: str) -> Element:
        return next(e for e in self.every() if e.attributes.get("id") == name)
