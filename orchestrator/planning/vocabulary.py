"""Names and values that selection expressions may use, and what is wrong with one that uses others."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import assert_never

from orchestrator.domain.case import AxisValue, axis_text
from orchestrator.domain.kernel import Kernel
from orchestrator.planning.expression import (
    And,
    Compare,
    Expression,
    Fault,
    Not,
    Operator,
    Or,
    Text,
    Within,
    Word,
)
from orchestrator.planning.suggest import did_you_mean, shown

_BUILT_IN = ("kernel", "op", "inputs", "seed", "case")


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


def faults(tree: Expression, known: Vocabulary) -> Iterator[Fault]:
    """Unknown names and values, and comparisons of order on what holds no numbers."""
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
            yield from faults(part, known)
        case And(parts) | Or(parts):
            for part in parts:
                yield from faults(part, known)
        case _:
            assert_never(tree)


def _word_faults(word: Text, known: Vocabulary) -> Iterator[Fault]:
    text = word.text
    if text in known.kernels or text in known.inputs:
        return
    if is_glob(text):
        if not any(glob_matches(kernel, text) for kernel in known.kernels):
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
        if name.text == "case" or (name.text in known.integers and whole_number(value.text) is not None):
            continue
        if any(glob_matches(t, value.text) if is_glob(value.text) else t == value.text for t in texts):
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
    elif whole_number(value.text) is None:
        yield Fault(f"{shown(value.text)} is not a whole number", value.at)


def whole_number(text: str) -> int | None:
    """The number that is written exactly so: ``007`` is none."""
    digits = text.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and len(digits) <= 18
    return int(text) if plain and str(int(text)) == text else None


def is_glob(text: str) -> bool:
    return "*" in text or "?" in text


def glob_matches(text: str, glob: str) -> bool:
    """``*`` and ``?`` only: a bracket stands for itself."""
    return fnmatchcase(text, glob.replace("[", "[[]"))
