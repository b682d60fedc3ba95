"""Versioned JSON of jobs, results and registrations. Pickle is never used.

Every message is ``{"wire": N, "kind": NAME, "body": {...}}``. Non-finite floats travel as strings.
"""

from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from orchestrator.domain.errors import WireError

WIRE_VERSION = 1
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


def encode(value: object) -> dict[str, Any]:
    """An envelope of plain JSON types, fit for a Celery message."""
    body = adapter(type(value)).dump_python(value, mode="json")
    return {"wire": WIRE_VERSION, "kind": type(value).__name__, "body": body}


def decode(cls: type[T], envelope: object, where: str) -> T:
    """The value in an envelope.

    Raises:
        WireError: other version or kind, or a wrong shape.
    """
    if not isinstance(envelope, dict):
        raise WireError(f"{where}: not a Tilefarm message")
    message = cast("dict[str, Any]", envelope)
    version, kind, body = message.get("wire"), message.get("kind"), message.get("body")
    if version != WIRE_VERSION:
        raise WireError(f"{where}: wire version {version}; this Tilefarm reads {WIRE_VERSION}")
    if kind != cls.__name__:
        raise WireError(f"{where}: a {kind}, expected a {cls.__name__}")
    try:
        return adapter(cls).validate_python(body)
    except ValidationError as e:
        raise WireError(f"{where}: {_first_problem(e)}") from e


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    at = ".".join(str(part) for part in first["loc"]) or "(top)"
    return f"{at}: {first['msg']} ({error.error_count()} problems)"
