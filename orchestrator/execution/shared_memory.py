"""How much shared memory a shader's text declares, where plain arithmetic tells."""

import re
from dataclasses import dataclass

_SHARED = re.compile(r"\bshared\s+(?:(?:highp|mediump|lowp)\s+)?(\w+)\s+(\w+)\s*((?:\[[^\]]*\])*)\s*;")
_ANY_SHARED = re.compile(r"\bshared\s+\w")
_CONSTANT = re.compile(r"(?:^|[;}\n])\s*const\s+u?int\s+(\w+)\s*=\s*([^;]+);")
_INDEX = re.compile(r"\[([^\]]*)\]")
_TOKEN = re.compile(r"\s*(?:(\d+)[uU]?|([A-Za-z_]\w*)|([-+*/()]))")
_SCALARS = {"float": 4, "int": 4, "uint": 4, "float16_t": 2}
_VECTORS = {"vec": 4, "ivec": 4, "uvec": 4, "f16vec": 2}


def declared_shared_bytes(text: str) -> int | None:
    """The sum over all ``shared`` variables of a text without comments; 0 without any.

    None where it cannot be told: a size that is no arithmetic of literals and constants, a type of one's own,
    a part that the preprocessor may leave out.
    """
    found = _SHARED.findall(text)
    if len(found) != len(_ANY_SHARED.findall(text)) or (
        found and re.search(r"^\s*#\s*if", text, re.MULTILINE)
    ):
        return None
    constants = dict(_CONSTANT.findall(text))
    total = 0
    for kind, _, sizes in found:
        size = _type_bytes(kind)
        for index in _INDEX.findall(sizes):
            count = _value(index, constants, depth=0)
            size = None if size is None or count is None else size * count
        if size is None:
            return None
        total += size
    return total


def _type_bytes(kind: str) -> int | None:
    """Three elements are stored as three: std140 is a matter of buffers."""
    stem, last = kind[:-1], kind[-1:]
    if stem in _VECTORS and last in ("2", "3", "4"):
        return _VECTORS[stem] * int(last)
    return _SCALARS.get(kind)


def _value(expression: str, constants: dict[str, str], depth: int) -> int | None:
    if depth > 8:
        return None
    tokens: list[str | int] = []
    at = 0
    while at < len(expression.rstrip()):
        match = _TOKEN.match(expression, at)
        if match is None:
            return None
        number, name, sign = match.groups()
        if name is not None:
            value = _value(constants[name], constants, depth + 1) if name in constants else None
            if value is None:
                return None
            tokens.append(value)
        else:
            tokens.append(int(number) if number is not None else sign)
        at = match.end()
    reader = _Reader(tokens)
    value = reader.sum()
    return value if reader.at == len(tokens) else None


@dataclass
class _Reader:
    """Recursive descent over + - * / and parentheses; division as GLSL rounds it."""

    tokens: list[str | int]
    at: int = 0

    def _next(self) -> str | int | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def sum(self) -> int | None:
        value = self.product()
        while value is not None and self._next() in ("+", "-"):
            sign = self._next()
            self.at += 1
            other = self.product()
            value = None if other is None else value + other if sign == "+" else value - other
        return value

    def product(self) -> int | None:
        value = self.factor()
        while value is not None and self._next() in ("*", "/"):
            sign = self._next()
            self.at += 1
            other = self.factor()
            if other is None or (sign == "/" and other <= 0):
                return None
            value = value * other if sign == "*" else value // other
        return value

    def factor(self) -> int | None:
        part = self._next()
        self.at += 1
        if part == "(":
            value = self.sum()
            closed = self._next() == ")"
            self.at += 1
            return value if closed else None
        return part if isinstance(part, int) else None
