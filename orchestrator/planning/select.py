"""Selection expressions over cases: ``attention_flash and precision=fp16_storage and not seq>=512``.

A bare word selects by kernel name (``*`` and ``?`` allowed) or by input distribution. A test names an axis, a
workload parameter, or one of ``kernel op inputs seed case``, the last a case id. A test on a name that a case
lacks is false, ``!=`` included. Used by ``-k``, by ``when`` of excludes and expectations, and by whoever
reads results.
"""

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import assert_never

from orchestrator.domain.case import AxisValue, Case, axis_text
from orchestrator.domain.kernel import Kernel
from orchestrator.planning.expression import (
    And,
    Compare,
    Expression,
    Fault,
    Not,
    Operator,
    Or,
    SelectionError,
    Text,
    Within,
    Word,
    parse,
)
from orchestrator.planning.suggest import did_you_mean, shown

Predicate = Callable[[Case], bool]

_BUILT_IN = ("kernel", "op", "inputs", "seed", "case")
_ORDER: dict[Operator, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Names and values that expressions may use: those of the loaded kernels."""

    kernels: frozenset[str]
    ops: frozenset[str]
    inputs: frozenset[str]
    axes: dict[str, frozenset[AxisValue]]
    """Axis or workload parameter → its declared values, over all kernels."""
    integers: frozenset[str]
    """Names that take any whole number."""

    @classmethod
    def of(cls, kernels: Iterable[Kernel]) -> "Vocabulary":
        known = list(kernels)
        axes: dict[str, frozenset[AxisValue]] = {}
        integers = {"seed"}
        for kernel in known:
            for axis in (*kernel.params, *kernel.axes):
                axes[axis.name] = axes.get(axis.name, frozenset()) | frozenset(axis.values or ())
                if axis.values is None:
                    integers.add(axis.name)
        return cls(
            kernels=frozenset(k.name for k in known),
            ops=frozenset(k.op for k in known),
            inputs=frozenset(name for k in known for name in k.distributions),
            axes=axes,
            integers=frozenset(integers),
        )


def compile_selection(text: str, vocabulary: Vocabulary | None = None, source: str = "-k") -> Predicate:
    """The expression as a predicate; with a vocabulary, unknown names and values are errors.

    Raises:
        SelectionError: all faults, each with its column and a suggestion.
    """
    tree = parse(text, source)
    if vocabulary is not None:
        faults = list(_faults(tree, vocabulary))
        if faults:
            raise SelectionError(source, text, faults)
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
    if _is_glob(word):
        return lambda case: fnmatchcase(case.kernel, word)
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
    plain: set[AxisValue] = {t for t in texts if not _is_glob(t)}
    bools = frozenset(text == "true" for text in plain if text in ("true", "false"))
    numbers = {n for t in plain if isinstance(t, str) and (n := _integer(t)) is not None}
    exact = frozenset(plain | numbers)
    globs = tuple(t for t in texts if _is_glob(t))

    def test(case: Case) -> bool:
        value = read(case)
        if value is None:
            return False
        found = value in (bools if value is True or value is False else exact)
        if globs and not found:
            text = axis_text(value)
            found = any(fnmatchcase(text, g) for g in globs)
        return found is wanted

    return test


def _ordered(name: str, compare: Callable[[int, int], bool], text: str) -> Predicate:
    read = _reader(name)
    bound = _integer(text)

    def test(case: Case) -> bool:
        value = read(case)
        return (
            isinstance(value, int)
            and not isinstance(value, bool)
            and bound is not None
            and compare(value, bound)
        )

    return test


def _integer(text: str) -> int | None:
    """The number that is written exactly so: ``007`` is none."""
    digits = text.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and len(digits) <= 18
    return int(text) if plain and str(int(text)) == text else None


def _is_glob(text: str) -> bool:
    return "*" in text or "?" in text


def _faults(tree: Expression, known: Vocabulary) -> Iterator[Fault]:
    match tree:
        case Word(word):
            yield from _word_faults(word, known)
        case Compare(name, ("=" | "!="), value):
            yield from _value_faults(name, (value,), known)
        case Compare(name, op, value):
            yield from _order_faults(name, op, value, known)
        case Within(name, values):
            yield from _value_faults(name, values, known)
        case Not(part):
            yield from _faults(part, known)
        case And(parts) | Or(parts):
            for part in parts:
                yield from _faults(part, known)
        case _:
            assert_never(tree)


def _word_faults(word: Text, known: Vocabulary) -> Iterator[Fault]:
    text = word.text
    if text in known.kernels or text in known.inputs:
        return
    if _is_glob(text):
        if not any(fnmatchcase(kernel, text) for kernel in known.kernels):
            yield Fault(f"no kernel is named like {shown(text)}.{did_you_mean('', known.kernels)}", word.at)
        return
    if text in known.axes or text in _BUILT_IN:
        yield Fault(f"{shown(text)} needs a value, such as {text}={_example(text, known)}", word.at)
    elif text in known.ops:
        yield Fault(f"{shown(text)} is an op; write op={text}", word.at)
    else:
        hint = did_you_mean(text, known.kernels | known.inputs)
        yield Fault(f"no kernel or input is named {shown(text)}.{hint}", word.at)


def _example(name: str, known: Vocabulary) -> str:
    values = sorted(axis_text(v) for v in _values(name, known))
    return values[0] if values else "512"


def _values(name: str, known: Vocabulary) -> frozenset[AxisValue]:
    match name:
        case "kernel":
            return frozenset(known.kernels)
        case "op":
            return frozenset(known.ops)
        case "inputs":
            return frozenset(known.inputs)
        case _:
            return known.axes.get(name, frozenset())


def _name_faults(name: Text, known: Vocabulary) -> Iterator[Fault]:
    if name.text not in known.axes and name.text not in _BUILT_IN:
        hint = did_you_mean(name.text, [*known.axes, *_BUILT_IN])
        yield Fault(f"unknown axis {shown(name.text)}.{hint}", name.at)


def _value_faults(name: Text, values: tuple[Text, ...], known: Vocabulary) -> Iterator[Fault]:
    if unknown := list(_name_faults(name, known)):
        yield from unknown
        return
    texts = [axis_text(v) for v in _values(name.text, known)]
    for value in values:
        if name.text == "case" or (name.text in known.integers and _integer(value.text) is not None):
            continue
        if any(fnmatchcase(t, value.text) if _is_glob(value.text) else t == value.text for t in texts):
            continue
        kind = "a whole number" if name.text in known.integers and not texts else f"a value of {name.text}"
        yield Fault(f"{shown(value.text)} is not {kind}.{did_you_mean(value.text, texts)}", value.at)


def _order_faults(name: Text, op: Operator, value: Text, known: Vocabulary) -> Iterator[Fault]:
    if unknown := list(_name_faults(name, known)):
        yield from unknown
        return
    numbers = any(isinstance(v, int) and not isinstance(v, bool) for v in _values(name.text, known))
    if name.text not in known.integers and not numbers:
        yield Fault(f'{shown(name.text)} holds no numbers; "{op}" needs them. Use "=", "!=" or "in"', name.at)
    elif _integer(value.text) is None:
        yield Fault(f"{shown(value.text)} is not a whole number", value.at)
