"""A suite → its cases: lazily, in a stable order, each once, in memory that does not grow with their number.

Order: blocks and workloads as in the file, then inputs, seeds and axes; within a mapping the kernel's own
order of names, so that the order of keys in the file changes nothing; values as listed. A parameter that
follows another one (kv_seq: seq) is resolved to its number: a case spells its shape out.

Blocks may overlap. A point is yielded by the first block that holds it and does not exclude it. No set of
seen points is kept for that: a workload's product times the axes is a box, and whether an earlier box
holds a point is decided from the box's value lists.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.results import Excluded
from orchestrator.planning.matrix import Block, Exclude, Space, Suite
from orchestrator.planning.select import Predicate, compile_selection

Values = tuple[AxisValue, ...]


class Tally:
    """Points that each exclude removed."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Exclude, int]] = {}

    def add(self, exclude: Exclude) -> None:
        _, count = self._found.get(exclude.where, (exclude, 0))
        self._found[exclude.where] = (exclude, count + 1)

    def excluded(self) -> list[Excluded]:
        """In the order of the file; excludes that removed nothing are left out."""
        found = sorted(self._found.values(), key=lambda item: item[0].line)
        return [Excluded(e.when, n, e.reason, e.owner, e.expires.isoformat()) for e, n in found]


@dataclass(frozen=True, slots=True)
class _Rule:
    exclude: Exclude
    removes: Predicate


class _Box:
    """One workload's product of one block."""

    __slots__ = ("_axes", "_context", "_workload", "block", "rules", "workload")

    def __init__(self, block: Block, workload: Space, rules: Sequence[_Rule]) -> None:
        self.block = block
        self.workload = workload
        self.rules = rules
        self._workload = {name: frozenset(values) for name, values in workload.items()}
        self._axes = {name: frozenset(values) for name, values in block.axes.items()}
        self._context = frozenset(product(block.inputs, block.seeds))

    def workloads(self) -> Iterator[dict[str, AxisValue]]:
        """Each workload once, linked parameters resolved to their values."""
        names = tuple(self.workload)
        linked = [name for name in names if name in self.block.linked]
        for values in product(*self.workload.values()):
            raw = dict(zip(names, values, strict=True))
            if not linked:
                yield raw
                continue
            found = {name: _resolved(name, raw, self.block.linked) for name in names}
            if all(raw[name] == self._first_spelling(name, found) for name in linked):
                yield found

    def _first_spelling(self, name: str, workload: dict[str, AxisValue]) -> AxisValue:
        """Of the listed values that mean the resolved one (its number, or a name), the first."""
        return next(v for v in self.workload[name] if _meaning(v, workload) == workload[name])

    def holds_workload(self, workload: dict[str, AxisValue]) -> bool:
        """Whether the product holds a resolved workload of the same kernel."""
        for name, allowed in self._workload.items():
            value = workload[name]
            if value not in allowed and not (
                name in self.block.linked and any(_meaning(v, workload) == value for v in allowed)
            ):
                return False
        return True

    def holds_context(self, inputs: str, seed: int) -> bool:
        return (inputs, seed) in self._context

    def axes_test(self, block: Block) -> "_AxesTest | None":
        """How this box's axes meet those of ``block``; None when they have no point in common."""
        partial: list[tuple[int, frozenset[AxisValue]]] = []
        for position, (name, values) in enumerate(block.axes.items()):
            common = self._axes[name].intersection(values)
            if not common:
                return None
            if len(common) < len(values):
                partial.append((position, common))
        return _AxesTest(self, tuple(partial))

    def yields_all(self, block: Block) -> bool:
        """Whether a point of ``block`` that this box holds is surely the box's own."""
        return not self.rules or block is self.block

    def yields(self, case: Case) -> bool:
        """Whether this box's own excludes leave a case that it holds."""
        return not any(rule.removes(case) for rule in self.rules)


@dataclass(frozen=True, slots=True)
class _AxesTest:
    """Whether a box's axes hold a combination of another block: only the positions that can differ."""

    box: _Box
    partial: tuple[tuple[int, frozenset[AxisValue]], ...]

    def holds(self, values: Values) -> bool:
        return all(values[position] in allowed for position, allowed in self.partial)


def expand_blocks(
    suite: Suite,
    excludes: Sequence[Exclude] = (),
    *,
    tally: Tally | None = None,
    selected: Predicate | None = None,
) -> Iterator[tuple[Case, Block]]:
    """Each case with the block that yields it: the first that holds it and does not exclude it.

    A block's own excludes act on that block only, ``excludes`` on all. ``tally`` counts each removed
    point once, under the first exclude in the file's order that removes it; points that are not
    selected are not counted.
    """
    count = Tally() if tally is None else tally
    shared = _rules(excludes)
    earlier: list[_Box] = []
    for block in suite.blocks:
        own = _rules(block.excludes)
        for workload in block.workloads:
            box = _Box(block, workload, own)
            for case in _cases(box, earlier, shared, count, selected):
                yield case, block
            earlier.append(box)


def _cases(
    box: _Box, earlier: Sequence[_Box], shared: Sequence[_Rule], tally: Tally, selected: Predicate | None
) -> Iterator[Case]:
    block = box.block
    kernel, op = block.kernel, block.op
    names = tuple(block.axes)
    rules = (*box.rules, *shared)
    tests = [test for b in earlier if b.block.kernel == kernel and (test := b.axes_test(block))]
    for workload in box.workloads():
        rivals = [t for t in tests if t.box.holds_workload(workload)]
        for inputs, seed in product(block.inputs, block.seeds):
            near = [t for t in rivals if t.box.holds_context(inputs, seed)]
            if any(not t.partial and t.box.yields_all(block) for t in near):
                continue
            for combination in product(*block.axes.values()):
                inside = [t.box for t in near if t.holds(combination)]
                if inside and any(b.yields_all(block) for b in inside):
                    continue
                case = Case(kernel, op, workload, dict(zip(names, combination, strict=True)), inputs, seed)
                if inside and any(b.yields(case) for b in inside):
                    continue
                if selected is not None and not selected(case):
                    continue
                if rules and _removed(case, rules, tally):
                    continue
                yield case


def _removed(case: Case, rules: Iterable[_Rule], tally: Tally) -> bool:
    for rule in rules:
        if rule.removes(case):
            tally.add(rule.exclude)
            return True
    return False


def _rules(excludes: Iterable[Exclude]) -> list[_Rule]:
    return [_Rule(e, compile_selection(e.when, source=e.where)) for e in excludes]


def _resolved(name: str, raw: dict[str, AxisValue], linked: frozenset[str]) -> AxisValue:
    value = raw[name]
    while name in linked and isinstance(value, str):
        name = value
        value = raw[name]
    return value


def _meaning(value: AxisValue, workload: dict[str, AxisValue]) -> AxisValue:
    """What a value of a linked parameter stands for in a resolved workload."""
    return workload[value] if isinstance(value, str) else value
