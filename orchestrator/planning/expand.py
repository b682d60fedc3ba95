"""A suite → its cases: lazily, in a stable order, each once, in memory that does not grow with their number.

Order: blocks and workloads as in the file, then inputs, seeds and axes; within a mapping the kernel's own
order of names, so that the order of keys in the file changes nothing; values as listed.

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
        self._workload = tuple(frozenset(values) for values in workload.values())
        self._axes = tuple(frozenset(values) for values in block.axes.values())
        self._context = frozenset(product(block.inputs, block.seeds))

    def holds_workload(self, kernel: str, values: Values) -> bool:
        return kernel == self.block.kernel and _inside(values, self._workload)

    def holds_context(self, inputs: str, seed: int) -> bool:
        return (inputs, seed) in self._context

    def holds_axes(self, values: Values) -> bool:
        return _inside(values, self._axes)

    def yields_all(self, block: Block) -> bool:
        """Whether a point of ``block`` that this box holds is surely the box's own."""
        return not self.rules or block is self.block

    def yields(self, case: Case) -> bool:
        """Whether this box's own excludes leave a case that it holds."""
        return not any(rule.removes(case) for rule in self.rules)


def expand(
    suite: Suite,
    excludes: Sequence[Exclude] = (),
    *,
    tally: Tally | None = None,
    selected: Predicate | None = None,
) -> Iterator[Case]:
    """Cases of the suite that ``selected`` accepts and no exclude removes.

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
            yield from _cases(box, earlier, shared, count, selected)
            earlier.append(box)


def _cases(
    box: _Box, earlier: Sequence[_Box], shared: Sequence[_Rule], tally: Tally, selected: Predicate | None
) -> Iterator[Case]:
    block = box.block
    kernel, op = block.kernel, block.op
    params, names = tuple(box.workload), tuple(block.axes)
    rules = (*box.rules, *shared)
    for values in product(*box.workload.values()):
        workload = dict(zip(params, values, strict=True))
        rivals = [b for b in earlier if b.holds_workload(kernel, values)]
        for inputs, seed in product(block.inputs, block.seeds):
            near = [b for b in rivals if b.holds_context(inputs, seed)]
            for combination in product(*block.axes.values()):
                inside = [b for b in near if b.holds_axes(combination)] if near else near
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


def _inside(values: Values, sets: Sequence[frozenset[AxisValue]]) -> bool:
    return all(value in allowed for value, allowed in zip(values, sets, strict=True))
