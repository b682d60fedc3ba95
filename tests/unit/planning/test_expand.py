"""Expansion: no duplicates, a stable order, excludes exact, memory that does not grow."""

import tracemalloc
from dataclasses import replace
from datetime import date
from itertools import product
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.case import AxisValue, Case
from orchestrator.planning.expand import Tally, expand_blocks
from orchestrator.planning.matrix import Block, Exclude, Space, Suite
from orchestrator.planning.select import compile_selection
from tests.unit.planning.toy import load, number

LINKED = frozenset({"kv_seq"})
EXPRESSIONS = (
    "seq=1",
    "seq>=2 and tile=b",
    "kv_seq=2",
    "vector=4 or n1",
    "not tile=a",
    "kernel=k2 and vector!=1",
    "seed=2",
)


def exclude(when: str, where: str, line: int = 1) -> Exclude:
    return Exclude(when, "reason", "owner", date(2027, 1, 1), line, where)


def some(values: tuple[AxisValue, ...]) -> st.SearchStrategy[tuple[AxisValue, ...]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True).map(tuple)


def spaces(**values: tuple[AxisValue, ...]) -> st.SearchStrategy[Space]:
    return st.fixed_dictionaries({name: some(v) for name, v in values.items()})


WORKLOADS = st.lists(spaces(seq=(1, 2, 3), kv_seq=("seq", 1, 2)), min_size=1, max_size=3).map(tuple)
AXES = spaces(tile=("a", "b", "c"), vector=(1, 4))


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    number_ = draw(st.integers(0, 10**9))
    rules = draw(st.lists(st.sampled_from(EXPRESSIONS), max_size=2))
    return Block(
        where=f"blocks.{number_}",
        line=number_,
        kernel=draw(st.sampled_from(("k1", "k2"))),
        op="op",
        workloads=draw(WORKLOADS),
        axes=draw(AXES),
        inputs=tuple(map(str, draw(some(("normal", "n1"))))),
        seeds=draw(st.sampled_from(((1,), (1, 2), (2,)))),
        excludes=tuple(exclude(w, f"blocks.{number_}.excludes.{i}", i) for i, w in enumerate(rules)),
        linked=LINKED,
    )


SUITES = st.lists(blocks(), max_size=4, unique_by=lambda b: b.where).map(lambda b: Suite("s", tuple(b)))
EXCLUDES = st.lists(st.sampled_from(EXPRESSIONS), max_size=3).map(
    lambda texts: [exclude(text, f"excludes.{i}", i) for i, text in enumerate(texts)]
)


def points(block: Block) -> list[Case]:
    """Brute force: the points of one block before excludes, once each, in order."""
    found: dict[str, Case] = {}
    for workload in block.workloads:
        for values in product(*workload.values()):
            shape = dict(zip(workload, values, strict=True))
            shape = {n: shape["seq"] if v == "seq" else v for n, v in shape.items()}
            for inputs, seed in product(block.inputs, block.seeds):
                for combination in product(*block.axes.values()):
                    axes = dict(zip(block.axes, combination, strict=True))
                    case = Case(block.kernel, block.op, shape, axes, inputs, seed)
                    found.setdefault(case.case_id, case)
    return list(found.values())


def model(suite: Suite, excludes: list[Exclude]) -> tuple[list[str], dict[str, int]]:
    """What the suite means, said as plainly as possible: ids in order, and points removed by each exclude."""
    seen: dict[str, Case] = {}
    counts: dict[str, int] = {}
    for block in suite.blocks:
        for case in points(block):
            if case.case_id in seen:
                continue
            rule = next((e for e in block.excludes if compile_selection(e.when)(case)), None)
            if rule is None:
                seen[case.case_id] = case
            else:
                counts[rule.where] = counts.get(rule.where, 0) + 1
    kept: list[str] = []
    for case_id, case in seen.items():
        rule = next((e for e in excludes if compile_selection(e.when)(case)), None)
        if rule is None:
            kept.append(case_id)
        else:
            counts[rule.where] = counts.get(rule.where, 0) + 1
    return kept, counts


def counted(tally: Tally) -> list[tuple[str, int]]:
    return sorted((e.when, e.count) for e in tally.excluded())


@settings(max_examples=200, deadline=None)
@given(SUITES, EXCLUDES)
def test_expansion_is_the_brute_force_model_in_its_order(suite: Suite, excludes: list[Exclude]):
    tally = Tally()
    cases = [case for case, _ in expand_blocks(suite, excludes, tally=tally)]
    kept, counts = model(suite, excludes)
    ids = [c.case_id for c in cases]
    assert len(set(ids)) == len(ids)
    assert ids == kept
    when = {e.where: e.when for e in (*excludes, *(e for b in suite.blocks for e in b.excludes))}
    assert counted(tally) == sorted((when[where], n) for where, n in counts.items())


@settings(max_examples=50, deadline=None)
@given(SUITES, EXCLUDES)
def test_the_order_is_stable(suite: Suite, excludes: list[Exclude]):
    first = [c.case_id for c, _ in expand_blocks(suite, excludes)]
    assert [c.case_id for c, _ in expand_blocks(suite, excludes)] == first


@settings(max_examples=50, deadline=None)
@given(SUITES, EXCLUDES, st.sampled_from(EXPRESSIONS))
def test_selection_commutes_with_excludes(suite: Suite, excludes: list[Exclude], text: str):
    selected = compile_selection(text)
    narrowed = [c.case_id for c, _ in expand_blocks(suite, excludes, selected=selected)]
    assert narrowed == [c.case_id for c, _ in expand_blocks(suite, excludes) if selected(c)]


def test_the_order_of_keys_in_the_file_changes_nothing(tmp_path: Path):
    one = """\
        version: 1
        suites:
          s:
            blocks:
              - kernel: attention_toy
                workloads: [{seq: [8, 16], causal: [true, false]}]
                axes: {tile: [16x16, 8x8], vector: [4, 1]}
        """
    other = """\
        version: 1
        suites:
          s:
            blocks:
              - axes: {vector: [4, 1], tile: [16x16, 8x8]}
                workloads: [{causal: [true, false], seq: [8, 16]}]
                kernel: attention_toy
        """
    first = [c.label for c, _ in expand_blocks(load(tmp_path, one).suite("s"))]
    assert [c.label for c, _ in expand_blocks(load(tmp_path, other).suite("s"))] == first
    assert first[0] == (
        "attention_toy[api=gles precision=fp32 tile=16x16 vector=4] "
        "seq=8 kv_seq=8 head_dim=64 heads=1 kv_heads=1 causal=true inputs=normal"
    )
    assert "tile=16x16 vector=1" in first[1]
    assert len(first) == 16


def test_a_parameter_that_follows_another_is_its_number_and_never_twice(tmp_path: Path):
    text = """\
        version: 1
        suites:
          s:
            blocks:
              - kernel: attention_toy
                workloads: [{seq: [8, 16], kv_seq: [8, seq]}]
                axes: {tile: 8x8}
        """
    cases = [case for case, _ in expand_blocks(load(tmp_path, text).suite("s"))]
    assert [(number(c, "seq"), number(c, "kv_seq")) for c in cases] == [(8, 8), (16, 8), (16, 16)]


def test_a_point_that_one_block_excludes_may_come_from_another(tmp_path: Path):
    text = """\
        version: 1
        suites:
          s:
            blocks:
              - kernel: attention_toy
                workloads: [{seq: [8, 16]}]
                axes: {tile: 8x8}
                excludes: [{when: seq=16, reason: r, owner: o, expires: 2027-01-01}]
              - kernel: attention_toy
                workloads: [{seq: [16, 8]}]
                axes: {tile: 8x8}
        """
    tally = Tally()
    cases = [case for case, _ in expand_blocks(load(tmp_path, text).suite("s"), tally=tally)]
    assert [number(c, "seq") for c in cases] == [8, 16]
    assert [(e.when, e.count, e.expires) for e in tally.excluded()] == [("seq=16", 1, "2027-01-01")]


def test_memory_does_not_grow_with_the_number_of_points():
    def peak(lengths: int) -> int:
        workload: Space = {"seq": tuple(range(1, lengths + 1)), "kv_seq": ("seq",)}
        axes: Space = {"tile": tuple("abcdefgh"), "vector": (1, 4)}
        block = Block("blocks.0", 1, "k1", "op", (workload,), axes, ("normal",), linked=LINKED)
        suite = Suite("s", (block, replace(block, where="blocks.1")))
        tracemalloc.start()
        count = sum(1 for _ in expand_blocks(suite, [exclude("tile=a", "excludes.0")]))
        traced = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == lengths * 14
        return traced

    small = peak(50)
    assert peak(800) < small + 200_000
