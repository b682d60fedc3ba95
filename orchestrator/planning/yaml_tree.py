"""YAML text → a tree that knows its lines. Hostile text ends in an error, never in a hang.

The tree is built here and not by the YAML library, so that every key has its line, a key given twice is
an error, and size, depth and alias expansion are bounded. Plain words follow YAML 1.2: ``yes`` and ``on``
are text. Anchors and aliases work; tags and merge keys are refused.
"""

import re
from dataclasses import dataclass, field

from orchestrator.planning.suggest import shown
from orchestrator.planning.yaml_events import Event, YamlSyntaxError, events

MAX_BYTES = 256 * 1024
MAX_NODES = 50_000
"""After aliases are expanded."""
MAX_DEPTH = 32

_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]{1,3})?")
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Scalar:
    line: int
    value: bool | int | float | str | None
    text: str
    """As written, without quotes."""


@dataclass(frozen=True, slots=True)
class Items:
    line: int
    items: list["Node"] = field(default_factory=list["Node"])


@dataclass(frozen=True, slots=True)
class Fields:
    line: int
    entries: dict[str, "Node"] = field(default_factory=dict[str, "Node"])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    """Line of each key."""


Node = Scalar | Items | Fields


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, at a line of the file; ``where`` is a path such as ``suites.smoke``."""

    line: int
    where: str
    what: str

    def render(self, file: str) -> str:
        where = f"{self.where}: " if self.where else ""
        return f"{file}:{self.line}: {where}{self.what}"


@dataclass(slots=True)
class _Frame:
    """A mapping or list that is not complete yet."""

    node: Items | Fields
    where: str
    anchor: str | None
    start: int
    key: str | None = None
    duplicate: bool = False

    @property
    def wants_key(self) -> bool:
        return isinstance(self.node, Fields) and self.key is None


def read_tree(
    data: bytes, max_bytes: int = MAX_BYTES, max_nodes: int = MAX_NODES
) -> tuple[Node | None, list[Problem]]:
    """The document's root (None when empty) and its duplicate keys.

    Raises:
        YamlSyntaxError: not UTF-8, not YAML, or beyond ``max_bytes``, ``max_nodes`` or MAX_DEPTH.
    """
    if len(data) > max_bytes:
        raise YamlSyntaxError(1, f"the file has more than {max_bytes} bytes; split it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise YamlSyntaxError(line, f"byte 0x{data[e.start]:02x} is not UTF-8; save the file as UTF-8") from e
    builder = _Builder(max_nodes)
    for event in events(text):
        builder.feed(event)
    return builder.root, builder.problems


class _Builder:
    def __init__(self, max_nodes: int) -> None:
        self.root: Node | None = None
        self._max_nodes = max_nodes
        self.problems: list[Problem] = []
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        """Name → (value, its size in nodes); None while the value is not complete."""
        self._count = 0
        self._documents = 0

    def feed(self, event: Event) -> None:
        match event.kind:
            case "document":
                self._documents += 1
                if self._documents > 1:
                    raise YamlSyntaxError(event.line, "a second document (---); a file holds one")
            case "scalar":
                self._scalar(event)
            case "alias":
                self._alias(event)
            case "mapping" | "sequence":
                self._open(event)
            case "end":
                frame = self._stack.pop()
                if frame.anchor is not None:
                    self._anchors[frame.anchor] = (frame.node, self._count - frame.start)
            case "other":
                pass

    def _scalar(self, event: Event) -> None:
        self._spend(1, event.line)
        frame = self._stack[-1] if self._stack else None
        if frame is not None and frame.wants_key and isinstance(frame.node, Fields):
            self._key(frame, frame.node, event)
            return
        line = event.line
        if not event.text and frame is not None and isinstance(frame.node, Fields):
            line = frame.node.lines.get(frame.key or "", line)  # the parser puts nothing on the next line
        node = Scalar(line, _meaning(event.text) if event.plain else event.text, event.text)
        if event.anchor is not None:
            self._anchors[event.anchor] = (node, 1)
        self._add(node)

    def _key(self, frame: _Frame, node: Fields, event: Event) -> None:
        key = event.text
        if key == "<<":
            raise YamlSyntaxError(event.line, 'merge keys ("<<") are not supported; alias a whole value')
        frame.key = key
        frame.duplicate = key in node.entries
        if frame.duplicate:
            what = f"given twice, first on line {node.lines[key]}. Remove one"
            self.problems.append(Problem(event.line, self._where(), what))
        else:
            node.lines[key] = event.line

    def _open(self, event: Event) -> None:
        self._refuse_as_key(event)
        self._spend(1, event.line)
        if len(self._stack) >= MAX_DEPTH:
            raise YamlSyntaxError(event.line, f"nested more than {MAX_DEPTH} deep")
        node = Items(event.line) if event.kind == "sequence" else Fields(event.line)
        where = self._where()
        self._add(node)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._stack.append(_Frame(node, where, event.anchor, self._count - 1))

    def _alias(self, event: Event) -> None:
        self._refuse_as_key(event)
        name = event.anchor or ""
        if name not in self._anchors:
            raise YamlSyntaxError(event.line, f"alias {shown('*' + name)} has no anchor above it")
        known = self._anchors[name]
        if known is None:
            raise YamlSyntaxError(event.line, f"alias {shown('*' + name)} contains itself")
        node, size = known
        self._spend(size, event.line)
        self._add(node)

    def _refuse_as_key(self, event: Event) -> None:
        if self._stack and self._stack[-1].wants_key:
            raise YamlSyntaxError(event.line, "a key must be a plain word")

    def _spend(self, nodes: int, line: int) -> None:
        self._count += nodes
        if self._count > self._max_nodes:
            raise YamlSyntaxError(line, f"more than {self._max_nodes} values once aliases are expanded")

    def _where(self) -> str:
        if not self._stack:
            return ""
        top = self._stack[-1]
        last = str(len(top.node.items)) if isinstance(top.node, Items) else path_part(top.key or "")
        return f"{top.where}.{last}" if top.where else last

    def _add(self, node: Node) -> None:
        if not self._stack:
            self.root = node
            return
        frame = self._stack[-1]
        if isinstance(frame.node, Items):
            frame.node.items.append(node)
            return
        if frame.key is not None and not frame.duplicate:
            frame.node.entries[frame.key] = node
        frame.key = None


def path_part(key: str) -> str:
    """A key as it stands in ``where``: quoted when it is not a plain word."""
    plain = key.isascii() and key.isprintable() and 0 < len(key) <= 60 and not set(key) & set(' ."')
    return key if plain else shown(key)


def _meaning(text: str) -> bool | int | float | str | None:
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if len(text) > _DIGITS:
        return text
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
