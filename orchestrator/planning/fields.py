"""Typed reading of a YAML tree: every wrong key, type and range becomes a problem, and reading goes on.

A reader that returns None has reported why.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from orchestrator.planning.suggest import did_you_mean, shown
from orchestrator.planning.yaml_tree import Fields, Items, Node, Problem, Scalar, path_part

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_PERCENT = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?%", re.ASCII)


def kind(node: Node | None) -> str:
    """What a node is, for messages: ``text "abc"``, ``the number 5``, ``a list``."""
    match node:
        case Fields():
            return "a mapping"
        case Items():
            return "a list"
        case Scalar(value=bool() as value):
            return "true" if value else "false"
        case Scalar(value=int() | float(), text=text):
            return f"the number {text}"
        case Scalar(value=str() as value):
            return f"text {shown(value)}" if value else "empty text"
        case _:
            return "nothing"


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping with known keys."""

    node: Fields
    where: str
    problems: list[Problem]

    @classmethod
    def read(
        cls,
        node: Node | None,
        where: str,
        problems: list[Problem],
        *,
        known: Iterable[str],
        required: Iterable[str] = (),
        line: int = 1,
    ) -> "Record | None":
        """A record, its unknown and missing keys reported; None when the node is no mapping."""
        if not isinstance(node, Fields):
            at = line if node is None else node.line
            problems.append(Problem(at, where, f"must be a mapping, not {kind(node)}"))
            return None
        record = cls(node, where, problems)
        words = list(known)
        for key in node.entries:
            if key not in words:
                record.problem(key, f"unknown key.{did_you_mean(key, words)}")
        for key in required:
            if key not in node.entries:
                problems.append(Problem(node.line, where, f"{shown(key)} is missing"))
        return record

    def at(self, key: str) -> str:
        return f"{self.where}.{path_part(key)}" if self.where else path_part(key)

    def line(self, key: str) -> int:
        return self.node.lines.get(key, self.node.line)

    def problem(self, key: str, what: str) -> None:
        self.problems.append(Problem(self.line(key), self.at(key), what))

    def text(self, key: str, default: str = "") -> str:
        """Text that is not blank, its white space single blanks; the default when absent or wrong."""
        node = self.node.entries.get(key)
        if node is None:
            return default
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            text = " ".join(node.value.split())
            if text.isprintable():
                return text
            self.problem(key, f"control characters in {shown(text)}; remove them")
            return default
        quoted = f' Write "{node.text}" in quotes.' if isinstance(node, Scalar) and node.text.strip() else ""
        self.problem(key, f"must be text, not {kind(node)}.{quoted}")
        return default

    def integer(self, key: str, default: int, low: int, high: int) -> int:
        node = self.node.entries.get(key)
        if node is None:
            return default
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self.problem(key, f"must be a whole number from {low} to {high}, not {kind(node)}")
        return default

    def number(self, key: str, low: float, high: float) -> float | None:
        node = self.node.entries.get(key)
        if node is None:
            return None
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and low < value <= high:
            return float(value)
        self.problem(key, f"must be a number above {low:g} and up to {high:g}, not {kind(node)}")
        return None

    def share(self, key: str, default: float, low: float, high: float) -> float:
        """A part of the whole, written in percent: ``3 %`` is 0.03. A bare number could mean either."""
        node = self.node.entries.get(key)
        if node is None:
            return default
        found = _PERCENT.fullmatch(node.text.strip()) if isinstance(node, Scalar) else None
        value = float(found[1]) / 100 if found else -1.0
        if low <= value <= high:
            return value
        self.problem(key, f"must be {low * 100:g} % to {high * 100:g} %, such as 3 %, not {kind(node)}")
        return default

    def date(self, key: str) -> date | None:
        node = self.node.entries.get(key)
        if node is None:
            return None
        text = node.text if isinstance(node, Scalar) else ""
        if _DATE.fullmatch(text):
            try:
                return date.fromisoformat(text)
            except ValueError as e:
                self.problem(key, f"{shown(text)} is not a date: {e}")
                return None
        self.problem(key, f"must be a date such as 2027-06-30, not {kind(node)}")
        return None

    def items(self, key: str) -> Iterator[tuple[Node, str]]:
        """(node, where) of each element of a list that must not be empty."""
        node = self.node.entries.get(key)
        if node is None:
            return
        if not isinstance(node, Items):
            self.problem(key, f"must be a list, not {kind(node)}")
            return
        if not node.items:
            self.problem(key, "an empty list; leave the key out or give a value")
        for index, item in enumerate(node.items):
            yield item, f"{self.at(key)}.{index}"


def one_or_many(node: Node, where: str, problems: list[Problem]) -> list[tuple[Scalar, str]]:
    """(scalar, where) of a value or of each element of a list of values."""
    if isinstance(node, Scalar):
        return [(node, where)]
    if isinstance(node, Fields):
        problems.append(Problem(node.line, where, "must be a value or a list of values, not a mapping"))
        return []
    if not node.items:
        problems.append(Problem(node.line, where, "an empty list; leave the key out or give a value"))
    found: list[tuple[Scalar, str]] = []
    for index, item in enumerate(node.items):
        if isinstance(item, Scalar):
            found.append((item, f"{where}.{index}"))
        else:
            problems.append(Problem(item.line, f"{where}.{index}", f"must be a value, not {kind(item)}"))
    return found
