"""Floats that may be NaN or infinite and still travel as valid JSON: as the strings nan, inf, -inf."""

import math
from typing import Annotated

from pydantic import PlainSerializer, WithJsonSchema


def _json_number(value: float) -> float | str:
    value = float(value)  # an int or a numpy number where a float is declared
    return value if math.isfinite(value) else str(value)


Number = Annotated[
    float,
    PlainSerializer(_json_number, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}, mode="serialization"),
]
