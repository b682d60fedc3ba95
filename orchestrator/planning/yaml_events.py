"""The one file that touches ruamel.yaml: text → typed events with lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ruamel.yaml import YAML
from ruamel.yaml import events as ruamel_events
from ruamel.yaml.error import YAMLError

from orchestrator.planning.suggest import printable, shown

EventKind = Literal["document", "scalar", "alias", "mapping", "sequence", "end", "other"]

_KINDS: dict[type, EventKind] = {
    ruamel_events.DocumentStartEvent: "document",
    ruamel_events.ScalarEvent: "scalar",
    ruamel_events.AliasEvent: "alias",
    ruamel_events.MappingStartEvent: "mapping",
    ruamel_events.SequenceStartEvent: "sequence",
    ruamel_events.MappingEndEvent: "end",
    ruamel_events.SequenceEndEvent: "end",
}


@dataclass(frozen=True, slots=True)
class Event:
    kind: EventKind
    line: int
    text: str = ""
    """Of a scalar, without quotes."""
    plain: bool = False
    """A scalar without quotes or block style: it may mean a number or a boolean."""
    anchor: str | None = None
    """``&name`` of a value, or the name that an alias refers to."""


class YamlSyntaxError(Exception):
    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line
        self.what = what


def events(text: str) -> Iterator[Event]:
    """The document's events, as they are parsed.

    Raises:
        YamlSyntaxError: not YAML, or a tag (none is supported).
    """
    parser: Any = YAML(typ="safe", pure=True)
    try:
        for raw in parser.parse(text):
            yield _typed(raw)
    except YAMLError as e:
        raise _syntax_error(text, e) from e
    except (ValueError, RecursionError) as e:
        raise YamlSyntaxError(1, f"not YAML: {type(e).__name__}") from e


def _typed(raw: object) -> Event:
    def read(name: str) -> object:
        return getattr(raw, name, None)

    line = int(getattr(read("start_mark"), "line", 0)) + 1
    tag, anchor, value = read("tag"), read("anchor"), read("value")
    if tag is not None:
        raise YamlSyntaxError(line, f"tags are not supported; remove {shown(str(tag))}")
    return Event(
        kind=_KINDS.get(type(raw), "other"),
        line=line,
        text="" if value is None else str(value),
        plain=read("style") is None,
        anchor=None if anchor is None else str(anchor),
    )


def _syntax_error(text: str, error: YAMLError) -> YamlSyntaxError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        position = getattr(error, "position", 0)
        line = text.count("\n", 0, position if isinstance(position, int) else 0) + 1
        return YamlSyntaxError(line, "not YAML: a control character; remove it")
    line = int(mark.line) + 1
    said = str(getattr(error, "problem", None) or getattr(error, "context", None) or "syntax error")
    if "'\\t'" in said:
        return YamlSyntaxError(line, "not YAML: a tab; use spaces")
    return YamlSyntaxError(
        line, f"not YAML: {printable(' '.join(said.split()))} (column {int(mark.column) + 1})"
    )
