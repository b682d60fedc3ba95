"""Findings with one cause as one line: "precision=fp16_storage on SM8650", not 36 lines.

A greedy cover (Chvátal, Mathematics of Operations Research 4(3), 1979): of all predicates of at most two
terms that findings satisfy and nearly all that satisfy them show, the one that explains most of what is not
explained yet; then the next. A predicate that many judged cases satisfy without showing it explains nothing.

New code is the same on every SoC: findings with that cause are covered over all SoCs together, and then SoC
by SoC where not all of them show it. A driver or a warm room belongs to one SoC.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from orchestrator.analysis.speed.causes import Cause
from orchestrator.analysis.speed.rows import Bools, Floats, Ints
from orchestrator.domain.case import AxisValue, axis_text

MIN_SHARE = 0.8
"""Of the judged cases that a predicate names, those that show it: tests find a change with 80 % power."""
_FIRST = ("kernel", "op", "precision", "tile", "api", "layout")
"""Which of predicates that say the same of tonight's cases is said: what people name a change by."""
_LEAST = 2
"""Findings that a predicate explains; fewer are told by themselves."""
_CHUNK = 20_000

Terms = tuple[tuple[str, str], ...]
"""(``kernel``, ``op`` or axis, value) in the order of ``_FIRST``; empty: all variants; ``case``: one."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A case on a SoC that has a verdict tonight: finding or not."""

    soc: str
    case_id: str
    kernel: str
    op: str
    axes: Mapping[str, AxisValue]
    effect: float
    """Log ratio."""
    cause: Cause | None = None
    """None: it did not move."""
    since: str = ""
    """What its cause is known by, e.g. the night that it began in."""


@dataclass(frozen=True, slots=True)
class Group:
    cause: Cause
    since: str
    slower: bool
    terms: Terms
    members: tuple[tuple[str, str], ...]
    """(SoC, case), sorted."""
    named: int
    """Judged cases that the terms name on these SoCs, whether they show it or not."""
    effect: float
    """Median log ratio."""
    kernel: str
    """Of all cases that the terms name; empty: several."""

    @property
    def socs(self) -> tuple[str, ...]:
        return tuple(sorted({soc for soc, _ in self.members}))

    @property
    def title(self) -> str:
        """``tile=64x16 of attention_flash``"""
        words = [value if name == "kernel" else f"{name}={value}" for name, value in self.terms]
        if not words:
            return "all variants"
        told = any(name in ("kernel", "case") for name, _ in self.terms)
        return " ".join(words) + (f" of {self.kernel}" if self.kernel and not told else "")


def groups(judged: Sequence[Judged]) -> tuple[Group, ...]:
    """All findings, each in one group; the largest groups first. The same for any order of ``judged``."""
    kinds: dict[tuple[Cause, str, bool, str], list[int]] = defaultdict(list)
    for n, item in enumerate(judged):
        if item.cause is not None:
            soc = "" if item.cause is Cause.CODE else item.soc
            kinds[item.cause, item.since, item.effect > 0, soc].append(n)
    if not kinds:
        return ()
    everything = _Items(judged)
    found: list[Group] = []
    for (cause, since, slower, _), showing in kinds.items():
        for terms, covered in _by_terms(everything, showing):
            found.append(_group(everything, cause, since, slower, terms, covered))
    return tuple(
        sorted(found, key=lambda g: (-len(g.members), g.socs, g.since, not g.slower, g.terms, g.cause))
    )


class _Items:
    """All judged cases, with the terms that findings have as columns of flags."""

    def __init__(self, judged: Sequence[Judged]) -> None:
        self.judged = judged
        self.still = np.array([item.cause is None for item in judged], np.bool_)
        self.soc = np.array([item.soc for item in judged], np.str_)
        columns: dict[tuple[str, str], list[int]] = {}
        for item in judged:
            if item.cause is not None:
                for term in _terms(item):
                    columns.setdefault(term, [])
        for n, item in enumerate(judged):
            for term in _terms(item):
                if term in columns:
                    columns[term].append(n)
        self.terms = sorted(columns, key=_order)
        self.flags: Bools = np.zeros((len(judged), len(self.terms)), np.bool_)
        for column, term in enumerate(self.terms):
            self.flags[columns[term], column] = True

    def having(self, terms: Terms, on: Bools) -> Ints:
        """Items with all of ``terms``, of those flagged in ``on``."""
        at = [self.terms.index(term) for term in terms]
        return np.flatnonzero(on & self.flags[:, at].all(axis=1)).astype(np.int64)


def _terms(item: Judged) -> Iterator[tuple[str, str]]:
    yield "kernel", item.kernel
    yield "op", item.op
    for name, value in item.axes.items():
        yield name, axis_text(value)


def _order(term: tuple[str, str]) -> tuple[int, str, str]:
    name, value = term
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name, value)


def _by_terms(items: _Items, showing: Sequence[int]) -> list[tuple[Terms, list[int]]]:
    """Findings of one kind by what they have in common, over all of their SoCs, else on some of them."""
    found: dict[Terms, list[int]] = {}
    socs = sorted({items.judged[n].soc for n in showing})
    left = list(showing)
    if len(socs) > 1:
        covers, left = _cover(items, left, np.isin(items.soc, socs))
        found = dict(covers)
    for soc in socs:
        own = [n for n in left if items.judged[n].soc == soc]
        covers, alone = _cover(items, own, items.soc == soc)
        for terms, covered in covers:
            found.setdefault(terms, []).extend(covered)
        for n in alone:
            found.setdefault((("case", items.judged[n].case_id),), []).append(n)
    return list(found.items())


def _cover(
    items: _Items, showing: Sequence[int], on: Bools
) -> tuple[list[tuple[Terms, list[int]]], list[int]]:
    """Predicates with the findings that each explains first, and the findings that none explains."""
    left = sorted(showing, key=lambda n: (items.judged[n].soc, items.judged[n].case_id))
    found: list[tuple[Terms, list[int]]] = []
    if len(left) < _LEAST:
        return found, left
    shown = _pairs(items.flags[left])
    # Cases that moved for another reason could not have shown this one.
    still = _pairs(items.flags[on & items.still])
    pure = (shown >= _LEAST) & (shown >= MIN_SHARE * (shown + still))
    all_pure = len(left) >= MIN_SHARE * (len(left) + int(np.count_nonzero(on & items.still)))
    while len(left) >= _LEAST:
        best = _best(items, left, pure, still, all_pure=all_pure)
        if best is None:
            break
        covered = set(items.having(best, on).tolist())
        found.append((best, [n for n in left if n in covered]))
        left = [n for n in left if n not in covered]
    return found, left


def _best(items: _Items, left: Sequence[int], pure: Bools, still: Floats, *, all_pure: bool) -> Terms | None:
    if all_pure:
        return ()
    explains = np.where(pure, _pairs(items.flags[list(left)]), 0)
    most = explains.max(initial=0)
    if most < _LEAST:
        return None
    # Columns stand in the order of preference, so the first of equals is the one to be named.
    ties = [(i, j) for i, j in np.argwhere(explains == most).tolist() if i <= j]
    i, j = min(ties, key=lambda t: (t[0] != t[1], still[t], t))
    return (items.terms[i],) if i == j else (items.terms[i], items.terms[j])


def _pairs(flags: Bools) -> Floats:
    """(terms, terms) how many rows have both terms; on the diagonal, how many have the one."""
    total = np.zeros((flags.shape[1], flags.shape[1]))
    for at in range(0, len(flags), _CHUNK):
        part = flags[at : at + _CHUNK].astype(np.float32)
        total += part.T @ part
    return total


def _group(
    items: _Items, cause: Cause, since: str, slower: bool, terms: Terms, covered: Sequence[int]
) -> Group:
    members = tuple(sorted((items.judged[n].soc, items.judged[n].case_id) for n in covered))
    named = list(covered)
    if not any(name == "case" for name, _ in terms):
        named = items.having(terms, np.isin(items.soc, sorted({soc for soc, _ in members}))).tolist()
    kernels = {items.judged[n].kernel for n in named}
    return Group(
        cause=cause,
        since=since,
        slower=slower,
        terms=terms,
        members=members,
        named=len(named),
        effect=median(items.judged[n].effect for n in covered),
        kernel=kernels.pop() if len(kernels) == 1 else "",
    )
