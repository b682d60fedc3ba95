"""Axes and parameters as fields of a C struct: whole numbers where all values are some, else text."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.domain.case import AxisValue, axis_text
from reports.tuning.c_text import Names, literal

ABSENT = "TILEFARM_ABSENT"
_TILE = re.compile(r"\d{1,6}(?:x\d{1,6}){1,2}")
_BOUND = 2**63


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: str
    """C type, with the star of a pointer."""
    values: Sequence[str]
    """C expression of each row."""
    said: str
    """What it holds, for a comment."""


def fields_of(rows: Sequence[Mapping[str, AxisValue]], prefix: str) -> list[Field]:
    """One a name, by name; a tile has one for each of its extents.

    Args:
        rows: one a struct; a name may lack in some.
    """
    names = Names(prefix)
    made: list[Field] = []
    for name in sorted({n for row in rows for n in row}):
        values = [row.get(name) for row in rows]
        known = [v for v in values if v is not None]
        if all(isinstance(v, str) and _TILE.fullmatch(v) for v in known):
            made += _extents(names, name, [None if v is None else str(v).split("x") for v in values])
        elif all(isinstance(v, int) and -_BOUND < v < _BOUND for v in known):
            said = "0 or 1" if all(isinstance(v, bool) for v in known) else ""
            texts = [ABSENT if v is None else str(int(v)) for v in values]
            made.append(Field(names.of(name), "int64_t ", texts, said))
        else:
            texts = ["NULL" if v is None else literal(axis_text(v)) for v in values]
            made.append(Field(names.of(name), "const char *", texts, ""))
    return made


def _extents(names: Names, name: str, values: Sequence[Sequence[str] | None]) -> list[Field]:
    most = max(len(v) for v in values if v is not None)
    return [
        Field(
            names.of(f"{name}_{'xyz'[at]}"),
            "int64_t ",
            [ABSENT if v is None or at >= len(v) else str(int(v[at])) for v in values],
            "",
        )
        for at in range(most)
    ]
