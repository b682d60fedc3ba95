"""What a kernel.py answered for one case, held against the types and words of its contract.

Python does not check what a method returns, and a wrong answer travels far before it hurts: a role that
nobody knows fails on the device, a grid of 0 runs nothing, features that are one text prune every point. Each
check gives the first fault as text, or None: what is wrong, and what to write instead.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast, get_args

from orchestrator.domain.kernel import Axis, Buffer, Cost, DType, Pass, Role, Subgroups
from orchestrator.planning.suggest import did_you_mean

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def attribute_fault(name: str, value: object) -> str | None:
    """Of a kernel's class attributes; the values of its axes are held against their defaults elsewhere."""
    match name:
        case "params" | "axes":
            return _entries_fault(name, value, Axis) or _first(map(_axis_fault, _entries(value) or ()))
        case "distributions":
            return _distributions_fault(value)
        case _:
            return None if isinstance(value, str) and value else f"{name} is {value!r}; give a text"


def declared_fault(buffers: object, passes: object) -> str | None:
    """Of ``buffers`` and ``passes``, each alone and against each other."""
    fault = _entries_fault("buffers", buffers, Buffer) or _entries_fault("passes", passes, Pass)
    if fault:
        return fault
    declared, steps = cast("Sequence[Buffer]", buffers), cast("Sequence[Pass]", passes)
    if not steps:
        return "passes is empty; a kernel dispatches at least once"
    return (
        _first(map(_buffer_fault, declared))
        or _twice("buffers", [b.name for b in declared])
        or _first(map(_pass_fault, steps))
        or _binding_fault(declared, steps)
    )


def invalid_fault(answer: object) -> str | None:
    """Of ``invalid``: a text or None."""
    if answer is None or (isinstance(answer, str) and answer.strip()):
        return None
    return f"invalid gives {answer!r}; give the reason as text, or None where the case can run"


def words_fault(method: str, answer: object) -> str | None:
    """Of ``features`` and ``matrices``: a set of texts."""
    words = _entries(answer, frozenset, set)
    if words is not None and all(isinstance(word, str) for word in words):
        return None
    return f"{method} gives {answer!r}; give a frozenset of texts"


def data_key_fault(answer: object) -> str | None:
    """Of ``data_key``: a text with something in it."""
    if isinstance(answer, str) and answer:
        return None
    return f"data_key gives {answer!r}; give a text of all that inputs and reference depend on"


def cost_fault(answer: object) -> str | None:
    """Of ``cost``: whole numbers, and no less traffic than is compulsory."""
    if not isinstance(answer, Cost):
        return f"cost gives {_type(answer)}; give a Cost"
    for name in ("flops", "bytes_min", "bytes_moved"):
        if not _whole(value := _of(answer, name), 0):
            return f"cost: {name} is {value!r}; give an int of 0 or more"
    if answer.bytes_moved < answer.bytes_min:
        return (
            f"cost: bytes_moved {answer.bytes_moved} < bytes_min {answer.bytes_min}; "
            "a variant moves at least what is compulsory"
        )
    return None


def _axis_fault(axis: object) -> str | None:
    name, values = _of(axis, "name"), _of(axis, "values")
    if not _is_name(name):
        return f"axis {name!r} has no name that a template can use; give letters, digits and _"
    listed = () if values is None else _entries(values)
    if listed is None:
        return f"axis '{name}': values are {_type(values)}; give a tuple, or None for any positive integer"
    for value in (*listed, _of(axis, "default")):
        if value is not None and not isinstance(value, bool | int | str):
            return f"axis '{name}': {value!r} is {_type(value)}; values are texts, ints and bools"
    return None


def _distributions_fault(value: object) -> str | None:
    names = _entries(value)
    if names is None:
        hint = f"('{value}',)" if isinstance(value, str) else "a tuple of names"
        return f"distributions is {_type(value)}; give {hint}"
    if not names:
        return "distributions is empty; name at least one, such as 'normal'"
    wrong = [name for name in names if not _is_name(name)]
    if wrong:
        return f"distributions: {wrong[0]!r} is no name; give letters, digits and _"
    return _twice("distributions", names)


def _buffer_fault(buffer: object) -> str | None:
    name, count = _of(buffer, "name"), _of(buffer, "count")
    if not _is_name(name):
        return f"buffers: {name!r} is no name; give letters, digits and _"
    for what, words in (("role", get_args(Role)), ("dtype", get_args(DType))):
        if (value := _of(buffer, what)) not in words:
            return f"buffers: {name}: {what} {value!r} is unknown.{did_you_mean(str(value), words)}"
    if not _whole(count, 1):
        return f"buffers: {name}: count is {count!r}; give an int of 1 or more"
    return None


def _pass_fault(step: object) -> str | None:
    template = _of(step, "template")
    if not isinstance(template, str) or not template:
        return f"passes: template is {template!r}; name a file of the kernel's folder"
    where = f"passes: {template}"
    for name in ("workgroup", "grid"):
        sizes = _entries(given := _of(step, name))
        if sizes is None or len(sizes) != 3 or not all(_whole(size, 1) for size in sizes):
            return f"{where}: {name} is {given!r}; give three ints (x, y, z) of 1 or more"
    if not _whole(shared := _of(step, "shared_bytes"), 0):
        return f"{where}: shared_bytes is {shared!r}; give an int of 0 or more"
    bound = _entries(given := _of(step, "buffers"))
    if bound is None or not all(isinstance(name, str) for name in bound):
        return f"{where}: buffers is {given!r}; give a tuple of names"
    return _parts_fault(step, where)


def _parts_fault(step: object, where: str) -> str | None:
    for name in ("context", "constants", "values"):
        if not isinstance(given := _of(step, name), Mapping):
            return f"{where}: {name} is {_type(given)}; give a dict"
    for what in ("constants", "values"):
        numbers = cast("Mapping[object, object]", _of(step, what))
        for name, value in numbers.items():
            if not isinstance(name, str) or not _whole(value, None):
                return f"{where}: {what}: {name!r} is {value!r}; give a name and an int"
    subgroups = _of(step, "subgroups")
    if subgroups is not None and not isinstance(subgroups, Subgroups):
        return f"{where}: subgroups is {_type(subgroups)}; give Subgroups(size, count)"
    return None


def _binding_fault(buffers: Sequence[Buffer], passes: Sequence[Pass]) -> str | None:
    known = {b.name for b in buffers}
    for step in passes:
        if unknown := [name for name in step.buffers if name not in known]:
            return f"passes: {step.template} binds {unknown}; buffers has {sorted(known)}"
    if unbound := sorted(known.difference(*(step.buffers for step in passes))):
        return f"no pass binds {unbound}; leave them out of buffers"
    return None


def _entries_fault(method: str, answer: object, item: type) -> str | None:
    entries = _entries(answer)
    if entries is None:
        return f"{method} gives {_type(answer)}; give a tuple of {item.__name__}"
    wrong = [entry for entry in entries if not isinstance(entry, item)]
    return f"{method} holds {_type(wrong[0])}; give a tuple of {item.__name__}" if wrong else None


def _twice(what: str, names: Sequence[object]) -> str | None:
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    return f"{what} names {twice} twice; rename one" if twice else None


def _entries(answer: object, *kinds: type) -> tuple[object, ...] | None:
    """What a tuple, or one of the given kinds, holds; None for anything else."""
    return tuple(cast("Sequence[object]", answer)) if isinstance(answer, kinds or (tuple,)) else None


def _of(thing: object, name: str) -> object:
    """An attribute as what it is, whatever it was declared to be."""
    return getattr(thing, name)


def _first(faults: Iterator[str | None]) -> str | None:
    return next((fault for fault in faults if fault), None)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _whole(value: object, least: int | None) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and (least is None or value >= least)


def _type(value: object) -> str:
    """How a message names what came instead: ``None``, ``the class Pass``, ``a str``."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
