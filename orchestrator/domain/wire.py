"""Versioned JSON of everything that crosses the broker. Pickle is never used.

Every message is the text of an envelope ``{"wire": N, "kind": NAME, "body": {...}}`` (``pack``, ``unpack``).
Non-finite floats travel as strings. Files of one host and one version are without an envelope (``to_json``).
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError
from pydantic_core import from_json as parsed

from orchestrator.domain.errors import WireError

WIRE_VERSION = 1
MAX_MESSAGE_BYTES = 1 << 20
"""Of everything but a batch. The longest result has a log of 16 KiB and 64 hashes for each output."""
MAX_BATCH_BYTES = 16 << 20
"""64 cases of some hundred dispatches each are about 3 MiB."""
_SHOWN = 40
"""Characters of somebody else's version or kind that are repeated in an error."""
T = TypeVar("T")


@cache
def adapter(cls: type[T]) -> TypeAdapter[T]:
    """Validator and serialiser of a domain dataclass."""
    return TypeAdapter(cls)


def to_json(value: object) -> str:
    """A domain value as JSON without NaN or Infinity literals."""
    return adapter(type(value)).dump_json(value, exclude_none=False).decode("utf-8")


def from_json(cls: type[T], text: str | bytes, where: str) -> T:
    """Parse and validate; ``where`` names the source in the error.

    Raises:
        WireError: not JSON, or not of the class's shape.
    """
    try:
        return adapter(cls).validate_json(text)
    except ValidationError as e:
        raise WireError(f"{where}: {_first_problem(e)}") from e


def pack(value: object, at_most: int = MAX_MESSAGE_BYTES) -> str:
    """The text of a message.

    Raises:
        WireError: longer than ``at_most`` bytes, or text that is no Unicode.
    """
    kind = type(value).__name__
    try:
        text = f'{{"wire": {WIRE_VERSION}, "kind": "{kind}", "body": {to_json(value)}}}'
        size = len(text.encode())
    except (PydanticSerializationError, UnicodeEncodeError) as e:
        raise WireError(f"{kind}: cannot be written as JSON: {str(e)[:200]}") from e
    _fits(size, at_most, kind)
    return text


def unpack(cls: type[T], text: object, where: str, at_most: int = MAX_MESSAGE_BYTES) -> T:
    """The value in a message's text; its size is looked at before anything else.

    Raises:
        WireError: too long, no JSON, other version or kind, or a wrong shape.
    """
    return decode(cls, _envelope(text, where, at_most), where)


def unpack_one(kinds: Sequence[type[T]], text: object, where: str) -> T:
    """As ``unpack``, for a message that is of one of several kinds."""
    envelope = _envelope(text, where, MAX_MESSAGE_BYTES)
    named = _fields(envelope).get("kind")
    return decode(next((cls for cls in kinds if cls.__name__ == named), kinds[0]), envelope, where)


def encode(value: object) -> dict[str, Any]:
    """An envelope of plain JSON types."""
    body = adapter(type(value)).dump_python(value, mode="json")
    return {"wire": WIRE_VERSION, "kind": type(value).__name__, "body": body}


def decode(cls: type[T], envelope: object, where: str) -> T:
    """The value in an envelope.

    Raises:
        WireError: other version or kind, or a wrong shape.
    """
    if not (message := _fields(envelope)):
        raise WireError(f"{where}: not a Tilefarm message")
    version, kind, body = message.get("wire"), message.get("kind"), message.get("body")
    if type(version) is not int or version != WIRE_VERSION:
        raise WireError(
            f"{where}: wire version {_short(version)}, and this Tilefarm reads version {WIRE_VERSION}: "
            "upgrade the older side"
        )
    if kind != cls.__name__:
        raise WireError(f"{where}: a {_short(kind)} of wire version {version}, expected a {cls.__name__}")
    try:
        return adapter(cls).validate_python(body)
    except ValidationError as e:
        raise WireError(f"{where}: {_first_problem(e)}") from e


def _envelope(text: object, where: str, at_most: int) -> object:
    if not isinstance(text, (str, bytes)):
        raise WireError(f"{where}: not the text of a Tilefarm message")
    _fits(len(text), at_most, where)
    try:
        return parsed(text, allow_inf_nan=False)
    except ValueError as e:  # also nesting beyond 200 levels
        raise WireError(f"{where}: no JSON: {str(e)[:200]}") from e


def _fields(envelope: object) -> dict[str, object]:
    return cast("dict[str, object]", envelope) if isinstance(envelope, dict) else {}


def _fits(size: int, at_most: int, where: str) -> None:
    if size > at_most:
        raise WireError(f"{where}: {size} bytes, and a message of its kind has at most {at_most}")


def _short(word: object) -> str:
    text = word if isinstance(word, str) else repr(word)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    at = ".".join(str(part) for part in first["loc"]) or "(top)"
    return f"{at}: {first['msg']} ({error.error_count()} problems)"
