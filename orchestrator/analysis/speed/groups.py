"""Findings with one cause as one line: "precision=fp16_storage on SM8650 since driver 744", not 36 lines.

A greedy cover (Chvátal, Mathematics of Operations Research 4(3), 1979): of all predicates of at most two
terms that findings satisfy and nearly all that satisfy them show, the one that explains most of what is not
explained yet; then the next. A predicate that many judged cases satisfy without showing it explains nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from orchestrator.analysis.speed.causes import Cause
from orchestrator.domain.case import AxisValue, axis_text

MIN_SHARE = 0.8
"""Of the judged cases that a predicate names, those that show it: tests find a change with 80 % power."""
_TERMS = 2

Terms = tuple[tuple[str, str], ...]
"""(axis or ``kernel``, value), sorted; empty for all variants."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A case on a SoC that has a verdict tonight: finding or not."""

    soc: str
    case_id: str
    kernel: str
    axes: Mapping[str, AxisValue]
    effect: float
    """Log ratio."""
    cause: Cause | None = None
    """None: it did not move."""
    since: str = ""
    """What changed, e.g. ``driver 744``."""


@dataclass(frozen=True, slots=True)
class Group:
    soc: str
    cause: Cause
    since: str
    slower: bool
    terms: Terms
    case_ids: tuple[str, ...]
    """Sorted."""
    named: int
    """Judged cases that the terms name, whether they show it or not."""
    effect: float
    """Median log ratio."""

    @property
    def title(self) -> str:
        """``precision=fp16_storage on SM8650 since driver 744``"""
        what = " ".join(f"{name}={value}" for name, value in self.terms) or "all variants"
        return f"{what} on {self.soc}" + (f" since {self.since}" if self.since else "")


def groups(judged: Sequence[Judged]) -> tuple[Group, ...]:
    """All findings, each in one group; the largest groups first. The same for any order of ``judged``."""
    by_soc: dict[str, list[Judged]] = defaultdict(list)
    for item in judged:
        by_soc[item.soc].append(item)
    found: list[Group] = []
    for items in by_soc.values():
        kinds: dict[tuple[Cause, str, bool], list[Judged]] = defaultdict(list)
        for item in items:
            if item.cause is not None:
                kinds[item.cause, item.since, item.effect > 0].append(item)
        for (cause, since, slower), showing in kinds.items():
            for terms, covered, named in _cover(showing, items):
                found.append(_group(covered[0].soc, cause, since, slower, terms, covered, named))
    return tuple(
        sorted(found, key=lambda g: (-len(g.case_ids), g.soc, g.since, not g.slower, g.terms, g.cause))
    )


def _group(
    soc: str, cause: Cause, since: str, slower: bool, terms: Terms, covered: Sequence[Judged], named: int
) -> Group:
    ids = tuple(sorted(i.case_id for i in covered))
    return Group(soc, cause, since, slower, terms, ids, named, median(i.effect for i in covered))


def _cover(showing: Sequence[Judged], all_items: Sequence[Judged]) -> list[tuple[Terms, list[Judged], int]]:
    """Predicates with the findings that each explains first, and how many judged cases it names."""
    left: list[tuple[Judged, frozenset[Terms]]] = [(item, _predicates(item)) for item in showing]
    shown = _counted(left)
    named = Counter(t for item in all_items for t in _predicates(item) if t in shown)
    pure = {terms for terms, n in shown.items() if n >= 2 and n >= MIN_SHARE * named[terms]}
    found: list[tuple[Terms, list[Judged], int]] = []
    while True:
        explains = {t: n for t, n in _counted(left).items() if t in pure and n >= 2}
        if not explains:
            break
        best = min(explains, key=lambda t: (-explains[t], len(t), named[t], t))
        found.append((best, [i for i, t in left if best in t], named[best]))
        left = [(i, t) for i, t in left if best not in t]
    alone = sorted((i for i, _ in left), key=lambda i: i.case_id)
    return found + [((("case", i.case_id),), [i], 1) for i in alone]


def _counted(items: Sequence[tuple[Judged, frozenset[Terms]]]) -> Counter[Terms]:
    return Counter(t for _, predicates in items for t in predicates)


def _predicates(item: Judged) -> frozenset[Terms]:
    single = sorted([("kernel", item.kernel), *((n, axis_text(v)) for n, v in item.axes.items())])
    return frozenset(c for size in range(_TERMS + 1) for c in combinations(single, size))
