"""The selection language's grammar: text of ``-k`` or ``when`` → a tree.

::

    or    = and ("or" and)*
    and   = not ("and" not)*
    not   = "not" not | "(" or ")" | word | test
    test  = NAME ("=" | "!=" | "<" | "<=" | ">" | ">=") VALUE
          | NAME ["not"] "in" "(" VALUE ("," VALUE)* ")"

A word or value is any run of characters without white space and ``( ) , = ! < > " '``, or text in quotes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.domain.errors import UsageError
from orchestrator.planning.suggest import shown

MAX_LENGTH = 4_096
MAX_DEPTH = 50

Operator = Literal["=", "!=", "<", "<=", ">", ">="]

_TOKEN = re.compile(
    r"""\s*(?:(?P<op>==|!=|<=|>=|[=<>(),])|"(?P<dq>[^"]*)"|'(?P<sq>[^']*)'|(?P<word>[^\s()=!<>,"']+)|(?P<bad>\S))"""
)
_KEYWORDS = frozenset({"and", "or", "not", "in"})
_OTHER_SPELLINGS = {"&&": "and", "&": "and", "||": "or", "|": "or", "!": "not", "AND": "and", "OR": "or"}
_OPERATORS: dict[str, Operator] = {
    "=": "=", "==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Text:
    """A word of the expression and where it stands (0-based column)."""

    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Word:
    """A bare word: kernel, glob over kernels, or input distribution."""

    word: Text


@dataclass(frozen=True, slots=True)
class Compare:
    name: Text
    op: Operator
    value: Text


@dataclass(frozen=True, slots=True)
class Within:
    name: Text
    values: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: "Expression"


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple["Expression", ...]


Expression = Word | Compare | Within | Not | And | Or


@dataclass(frozen=True, slots=True)
class Fault:
    what: str
    at: int


class SelectionError(UsageError):
    """Everything wrong with one expression; prints each fault with a caret under its column."""

    def __init__(self, source: str, text: str, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        line = "".join(c if c.isprintable() else " " for c in text)
        parts = [f"{source}: {f.what}\n  {line}\n  {' ' * f.at}^" for f in self.faults]
        super().__init__("\n".join(parts))


class _Stop(Exception):
    def __init__(self, what: str, at: int) -> None:
        super().__init__(what)
        self.fault = Fault(what, at)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: Literal["op", "word", "quoted", "end"]
    text: str
    at: int


def parse(text: str, source: str = "-k") -> Expression:
    """The expression's tree; ``source`` names it in errors.

    Raises:
        SelectionError: empty, too long, nested too deep, or not in the grammar.
    """
    try:
        if len(text) > MAX_LENGTH:
            raise _Stop(f"{len(text)} characters, more than {MAX_LENGTH}", 0)
        return _Parser(_tokens(text)).whole()
    except _Stop as stop:
        raise SelectionError(source, text[:MAX_LENGTH], [stop.fault]) from None


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while (match := _TOKEN.match(text, position)) is not None:
        position = match.end()
        group = match.lastgroup or ""
        value, at = match[group], match.start(group)
        if group == "bad":
            raise _Stop("a quote that never ends" if value in "\"'" else _unexpected(value), at)
        kind = "quoted" if group in ("dq", "sq") else "op" if group == "op" else "word"
        tokens.append(_Token(kind, value, at))
    tokens.append(_Token("end", "", len(text)))
    return tokens


def _unexpected(text: str) -> str:
    better = _OTHER_SPELLINGS.get(text)
    return f"unexpected {shown(text)}." + (f' Write "{better}".' if better else "")


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def whole(self) -> Expression:
        if self._peek().kind == "end":
            raise _Stop("an empty expression; leave it out to select everything", 0)
        found = self._or()
        rest = self._peek()
        if rest.kind != "end":
            if rest.text == ")" and rest.kind == "op":
                raise _Stop('")" without "("', rest.at)
            better = _OTHER_SPELLINGS.get(rest.text)
            raise _Stop(f'{shown(rest.text)} where "{better or "and"}" or "or" was expected', rest.at)
        return found

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _accept(self, kind: Literal["op", "word"], text: str) -> bool:
        token = self._peek()
        if token.kind == kind and token.text == text:
            self._next += 1
            return True
        return False

    def _or(self) -> Expression:
        parts = [self._and()]
        while self._accept("word", "or"):
            parts.append(self._and())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _and(self) -> Expression:
        parts = [self._not()]
        while self._accept("word", "and"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _not(self) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _Stop(f"nested more than {MAX_DEPTH} deep", self._peek().at)
        try:
            if self._accept("word", "not"):
                return Not(self._not())
            opened = self._peek()
            if self._accept("op", "("):
                inner = self._or()
                if not self._accept("op", ")"):
                    raise _Stop('"(" without ")"', opened.at)
                return inner
            return self._test()
        finally:
            self._depth -= 1

    def _test(self) -> Expression:
        name = self._text("a kernel, an input or an axis")
        token = self._peek()
        if token.kind == "op" and token.text in _OPERATORS:
            self._take()
            return Compare(name, _OPERATORS[token.text], self._text(f"a value for {shown(name.text)}"))
        negated = token.text == "not" and token.kind == "word"
        if negated:
            self._take()
        if not self._accept("word", "in"):
            if negated:
                raise _Stop('"not" where "and" or "or" was expected', token.at)
            return Word(name)
        within = Within(name, self._list(name))
        return Not(within) if negated else within

    def _list(self, name: Text) -> tuple[Text, ...]:
        if not self._accept("op", "("):
            raise _Stop('"in" needs a list: in (a, b)', self._peek().at)
        values = [self._text(f"a value for {shown(name.text)}")]
        while self._accept("op", ","):
            values.append(self._text(f"a value for {shown(name.text)}"))
        if not self._accept("op", ")"):
            raise _Stop('the list of "in" has no ")"', self._peek().at)
        return tuple(values)

    def _text(self, wanted: str) -> Text:
        token = self._peek()
        if token.kind == "quoted" or (token.kind == "word" and token.text not in _KEYWORDS):
            self._take()
            return Text(token.text, token.at)
        found = "the end" if token.kind == "end" else shown(token.text)
        raise _Stop(f"{found} where {wanted} was expected", token.at)
