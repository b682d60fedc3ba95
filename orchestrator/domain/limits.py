"""What words and numbers from elsewhere may be: they become names of files, lines of a job, a phone's memory.

Models made of these types read values that are typed already (``from_attributes``) and say where one is not
what it may be.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from orchestrator.domain.errors import WireError

WORD = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,79}$"
"""No path, no hidden file, no option of a command, no word of a shell; the runner takes no longer one."""
Word = Annotated[str, StringConstraints(pattern=WORD)]
DeviceId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,119}$")]
"""Also the id of a pool of phones."""
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Line = Annotated[str, StringConstraints(max_length=1000)]
"""For people."""
Text = Annotated[str, StringConstraints(max_length=20_000)]
"""For people: a driver's log."""
_SCHEMES = frozenset({"abfs", "az", "file", "gcs", "gs", "http", "https", "memory", "s3"})
_UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
U32 = Annotated[int, Field(ge=0, lt=1 << 32)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
T = TypeVar("T")


class Limits(BaseModel):
    """Fields that are not named may be anything."""

    model_config = ConfigDict(from_attributes=True)


def check(limits: type[Limits], value: object, where: str) -> None:
    """
    Raises:
        WireError: names the first field that is not what it may be, and how many there are.
    """
    try:
        limits.model_validate(value)
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False, include_context=False)[0]
        at = ".".join(str(part)[:40] for part in first["loc"]) or "(top)"
        raise WireError(f"{where}: {at}: {first['msg']} ({e.error_count()} problems)") from e


def is_word(text: str) -> bool:
    return re.fullmatch(WORD, text) is not None and not text.endswith("\n")


def plain_store(url: str) -> str:
    """A blob store's URL as it came. fsspec opens much else by one: archives, caches, other machines' shells.

    Raises:
        ValueError: it is of no kind that a farm uses.
    """
    scheme, colon, rest = url.partition("://")
    if not colon or scheme not in _SCHEMES or "::" in rest:
        raise ValueError(f"is none of {', '.join(sorted(_SCHEMES))}")
    return url


def printable(text: str, at_most: int = 1000) -> str:
    """Text of a phone or a driver for people: one line without control characters, direction marks and halves
    of characters, and not longer than this."""
    clean = "".join(" " if unicodedata.category(c) in _UNPRINTABLE else c for c in text[: 2 * at_most])
    return clean if len(clean) <= at_most else f"{clean[: at_most - 1]}…"


def printables(value: T, at_most: int = 1000) -> T:
    """A dataclass, list, tuple or dict with all its text ``printable``, however deep."""
    return cast("T", _cleaned(value, at_most))


def _cleaned(value: object, at_most: int) -> object:
    if type(value) is str:  # and no word of an enum
        return printable(value, at_most)
    if is_dataclass(value) and not isinstance(value, type):
        changed: dict[str, Any] = {f.name: _cleaned(getattr(value, f.name), at_most) for f in fields(value)}
        return replace(value, **changed)
    if isinstance(value, Mapping):
        found = cast("Mapping[str, object]", value)
        return {printable(k, at_most): _cleaned(v, at_most) for k, v in found.items()}
    if isinstance(value, (list, tuple)):
        items = [_cleaned(v, at_most) for v in cast("list[object]", value)]
        return items if isinstance(value, list) else tuple(items)
    return value
