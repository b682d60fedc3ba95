"""Values of one axis or workload parameter, checked against what the kernel declares."""

from orchestrator.domain.case import AxisValue, axis_text
from orchestrator.domain.kernel import Axis
from orchestrator.planning.suggest import did_you_mean, shown

MAX_INTEGER = 2**31 - 1

_WORDS_FOR_BOOL = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


def allows(axis: Axis, value: object) -> bool:
    """Whether the kernel declares exactly this value: 1, true and "1" are three values."""
    if axis.values is None:
        whole = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_INTEGER
        return whole or _same(value, axis.default)
    return any(_same(value, allowed) for allowed in axis.values)


def refusal(axis: Axis, value: object, text: str) -> str:
    """Why a value is not allowed and what to write instead; ``text`` is the value as written."""
    named = shown(text) if text else "nothing"
    if axis.values is None:
        plain = isinstance(value, str) and text.isascii() and text.isdigit() and len(text) <= 10
        plain = plain and allows(axis, int(text))
        fix = f" Did you mean {text} without quotes?" if plain else ""
        return f"{named} is not a whole number from 1 to {MAX_INTEGER}.{fix}"
    texts = [axis_text(v) for v in axis.values]
    if text in texts:
        declared = axis.values[texts.index(text)]
        fix = "in quotes" if isinstance(declared, str) else "without quotes"
        return (
            f"{named} is {_type(value)}, and {axis.name} takes {_type(declared)}. Did you mean {text} {fix}?"
        )
    better = _WORDS_FOR_BOOL.get(text.casefold())
    if better in texts:
        return f"{named} is {_type(value)}, and {axis.name} takes true or false. Did you mean {better}?"
    return f"{named} is not a value of {axis.name}.{did_you_mean(text, texts)}"


def from_text(axis: Axis, text: str) -> AxisValue | None:
    """The declared value that people write as ``text``, or None."""
    candidates: list[AxisValue] = [*(axis.values or ()), *([] if axis.default is None else [axis.default])]
    for value in candidates:
        if axis_text(value) == text and allows(axis, value):
            return value
    if (
        axis.values is None
        and text.isascii()
        and text.isdigit()
        and len(text) <= 10
        and allows(axis, int(text))
    ):
        return int(text)
    return None


def _same(a: object, b: object) -> bool:
    return type(a) is type(b) and a == b


def _type(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case _:
            return "nothing"
