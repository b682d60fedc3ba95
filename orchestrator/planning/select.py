"""Selection expressions over cases: ``attention_flash and precision=fp16_storage and not seq>=512``.

A bare word selects by kernel name (``*`` and ``?`` allowed) or by input distribution. A test names an axis, a
workload parameter, or one of ``kernel op inputs seed case``, the last a case id. A test on a name that a case
lacks is false, ``!=`` included. Used by ``-k``, by ``when`` of excludes and expectations, and by whoever
reads results.
"""

import operator
from collections.abc import Callable
from typing import assert_never

from orchestrator.domain.case import AxisValue, Case, axis_text
from orchestrator.planning.expression import (
    And,
    Compare,
    Expression,
    Not,
    Operator,
    Or,
    SelectionError,
    Within,
    Word,
    parse,
)
from orchestrator.planning.vocabulary import Vocabulary, faults, glob_matches, is_glob, whole_number

Predicate = Callable[[Case], bool]

_ORDER: dict[Operator, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compile_selection(text: str, vocabulary: Vocabulary | None = None, source: str = "-k") -> Predicate:
    """The expression as a predicate; with a vocabulary, unknown names and values are errors.

    Raises:
        SelectionError: all faults, each with its column and a suggestion.
    """
    tree = parse(text, source)
    if vocabulary is not None:
        found = list(faults(tree, vocabulary))
        if found:
            raise SelectionError(source, text, found)
    return _predicate(tree)


def _predicate(tree: Expression) -> Predicate:
    match tree:
        case Word(word):
            return _word_predicate(word.text)
        case Compare(name, ("=" | "!=") as op, value):
            return _equals(name.text, [value.text], wanted=op == "=")
        case Compare(name, op, value):
            return _ordered(name.text, _ORDER[op], value.text)
        case Within(name, values):
            return _equals(name.text, [v.text for v in values], wanted=True)
        case Not(part):
            inner = _predicate(part)
            return lambda case: not inner(case)
        case And(parts):
            return _joined([_predicate(p) for p in parts], _both)
        case Or(parts):
            return _joined([_predicate(p) for p in parts], _either)
        case _:
            assert_never(tree)


def _joined(parts: list[Predicate], join: Callable[[Predicate, Predicate], Predicate]) -> Predicate:
    """A balanced tree of pairs: a third of the time of ``all()`` over a generator, and never deep."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return join(_joined(parts[:middle], join), _joined(parts[middle:], join))


def _both(a: Predicate, b: Predicate) -> Predicate:
    return lambda case: a(case) and b(case)


def _either(a: Predicate, b: Predicate) -> Predicate:
    return lambda case: a(case) or b(case)


def _word_predicate(word: str) -> Predicate:
    if is_glob(word):
        return lambda case: glob_matches(case.kernel, word)
    return lambda case: case.kernel == word or case.inputs == word


def _reader(name: str) -> Callable[[Case], AxisValue | None]:
    match name:
        case "kernel":
            return lambda case: case.kernel
        case "op":
            return lambda case: case.op
        case "inputs":
            return lambda case: case.inputs
        case "seed":
            return lambda case: case.seed
        case "case":
            return lambda case: case.case_id
        case _:

            def read(case: Case) -> AxisValue | None:
                value = case.axes.get(name)
                return case.workload.get(name) if value is None else value

            return read


def _equals(name: str, texts: list[str], *, wanted: bool) -> Predicate:
    read = _reader(name)
    plain: set[AxisValue] = {t for t in texts if not is_glob(t)}
    bools = frozenset(text == "true" for text in plain if text in ("true", "false"))
    numbers = {n for t in plain if isinstance(t, str) and (n := whole_number(t)) is not None}
    exact = frozenset(plain | numbers)
    globs = tuple(t for t in texts if is_glob(t))

    def test(case: Case) -> bool:
        value = read(case)
        if value is None:
            return False
        found = value in (bools if value is True or value is False else exact)
        if globs and not found:
            text = axis_text(value)
            found = any(glob_matches(text, g) for g in globs)
        return found is wanted

    return test


def _ordered(name: str, compare: Callable[[int, int], bool], text: str) -> Predicate:
    read = _reader(name)
    bound = whole_number(text)

    def test(case: Case) -> bool:
        value = read(case)
        return (
            isinstance(value, int)
            and not isinstance(value, bool)
            and bound is not None
            and compare(value, bound)
        )

    return test
