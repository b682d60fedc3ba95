"""Pruning over generated devices and kernels, against an oracle that is written another way.

Devices from a phone with 16 KiB of shared memory and 128 invocations up to a desktop GPU; kernels from
trivial to far too large. Nothing let through breaks a declared limit, nothing that fits is dropped, and each
reason names what is short and both numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hypothesis import event, given, settings
from hypothesis import strategies as st

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Buffer, Pass, Subgroups
from orchestrator.domain.profile import Profile, SubgroupFacts
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.prune import Drop, check, prune
from tests.unit.planning.toy import Shaped, device, profile

LIMITS = {
    "shared_bytes": (16_384, 32_768, 49_152, 65_536, 102_400),
    "invocations": (128, 256, 512, 1_024, 1_536),
    "group_x": (128, 256, 1_024, 1_536),
    "group_y": (128, 256, 1_024, 1_536),
    "group_z": (64, 128, 1_024),
    "count_x": (65_535, 2**31 - 1),
    "count_y": (65_535, 2**31 - 1),
    "count_z": (65_535, 2**31 - 1),
    "storage_bytes": (1 << 27, 1 << 28, 1 << 31, 2**32 - 1),
    "storage_bindings": (4, 8, 35, 1 << 20),
}
FEATURES = ("pack_half", "float16", "storage16", "cooperative_matrix")
SUBGROUPS = (4, 8, 16, 32, 64, 128)
NAMES = tuple("abcdefghijk")


def near(name: str) -> st.SearchStrategy[int]:
    """Needs around the limits that devices have: one below, exact, one above, and anything smaller."""
    edges = [value + step for value in LIMITS[name] for step in (-1, 0, 1)]
    return st.one_of(st.sampled_from(edges), st.integers(1, max(LIMITS[name])))


@st.composite
def facts(draw: st.DrawFn) -> SubgroupFacts:
    advertised = draw(st.sampled_from((0, *SUBGROUPS)))
    measured = draw(st.sampled_from((0, advertised, *SUBGROUPS)))
    low, high = sorted(draw(st.tuples(st.sampled_from(SUBGROUPS), st.sampled_from(SUBGROUPS))))
    return (
        SubgroupFacts(advertised, measured, low, high)
        if draw(st.booleans())
        else SubgroupFacts(advertised, measured)
    )


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    limits = {name: draw(st.sampled_from(values)) for name, values in LIMITS.items()}
    known = (*FEATURES, "subgroup_size_control")
    features = {name: draw(st.booleans()) for name in known if draw(st.booleans())}
    return replace(profile(limits=limits, features=features), subgroup=draw(facts()))


def sizes() -> st.SearchStrategy[tuple[int, int, int]]:
    small = st.sampled_from((1, 2, 4, 8, 16, 32, 64, 128, 256))
    edge = st.sampled_from([(v + s, 1, 1) for v in LIMITS["invocations"] for s in (-1, 0, 1)])
    flat = st.tuples(near("group_x"), st.just(1), st.just(1))
    deep = st.tuples(st.just(1), st.just(1), near("group_z"))
    return st.one_of(st.tuples(small, small, small), edge, flat, deep)


def grids() -> st.SearchStrategy[tuple[int, int, int]]:
    side = st.one_of(st.integers(1, 64), st.sampled_from((65_535, 65_536, 2**31 - 1)))
    return st.tuples(side, side, side)


@st.composite
def passes(draw: st.DrawFn) -> Pass:
    group = draw(sizes())
    subgroups = None
    if draw(st.booleans()):
        size = draw(st.sampled_from(SUBGROUPS))
        exact = max(1, group[0] * group[1] * group[2] // size)
        subgroups = Subgroups(size, draw(st.sampled_from((exact, exact + 1))))
    bound = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=9, unique=True))
    shared = draw(st.one_of(st.just(0), near("shared_bytes")))
    return Pass("t", group, draw(grids()), shared, tuple(bound), subgroups=subgroups)


@st.composite
def kernels(draw: st.DrawFn) -> Shaped:
    steps = tuple(draw(st.lists(passes(), min_size=1, max_size=3)))
    counts = st.one_of(st.integers(1, 1000), near("storage_bytes").map(lambda n: max(1, n // 4)))
    bound = {name for step in steps for name in step.buffers}
    buffers = tuple(
        Buffer(name, "out", draw(st.sampled_from(("f32", "f16", "u32"))), draw(counts))
        for name in NAMES
        if name in bound
    )
    return Shaped(steps, buffers, draw(st.frozensets(st.sampled_from(FEATURES), max_size=2)))


@dataclass(frozen=True)
class Oracle:
    """The rules said another way: pass by pass and limit by limit, nothing folded into a maximum."""

    kernel: Shaped
    profile: Profile

    def impossible(self) -> bool:
        """No device could run it: the work group does not hold the subgroups that the tiling needs."""
        for step in self.kernel.passes(CASE):
            x, y, z = step.workgroup
            if step.subgroups is not None and x * y * z != step.subgroups.size * step.subgroups.count:
                return True
        return False

    def broken(self) -> Iterator[str]:
        """Every rule that some pass breaks on this device."""
        limits, features, own = self.profile.limits, self.profile.features, self.profile.subgroup
        size_of = {
            b.name: -(-b.count * (2 if b.dtype == "f16" else 4) // 4) * 4 for b in self.kernel.buffers(CASE)
        }
        for step in self.kernel.passes(CASE):
            asked = [("shared_bytes", step.shared_bytes)]
            product = 1
            for letter, side, groups in zip("xyz", step.workgroup, step.grid, strict=True):
                product *= side
                asked += [(f"group_{letter}", side), (f"count_{letter}", groups)]
            asked += [("invocations", product), ("storage_bindings", len(step.buffers))]
            asked += [("storage_bytes", size_of[name]) for name in step.buffers]
            yield from (name for name, need in asked if not need <= limits[name])
            if step.subgroups is not None:
                wanted = step.subgroups.size
                can_ask = features.get("subgroup_size_control", False) and own.min <= wanted <= own.max
                is_own = own.advertised == wanted and own.measured in (0, wanted)
                if not (can_ask or is_own):
                    yield "subgroup_size"
        yield from (name for name in self.kernel.features(CASE) if not features.get(name, False))


CASE = Case("attention_toy", "attention", {"heads": 1, "kv_heads": 1}, {"api": "gles"})


@settings(max_examples=400, deadline=None)
@given(kernels(), profiles())
def test_exactly_what_does_not_fit_is_dropped(kernel: Shaped, target: Profile):
    found = prune(check(kernel, CASE), device("d", target))
    oracle = Oracle(kernel, target)
    if oracle.impossible():
        event("invalid")
        assert found is not None
        assert found.verdict is Verdict.INVALID
        assert all(r.startswith("subgroups ") and " != " in r for r in found.reasons)
        return
    broken = set(oracle.broken())
    event("fits" if found is None else "dropped")
    assert (found is None) is (not broken)
    if found is None:
        return
    assert found.verdict is Verdict.UNSUPPORTED
    named = {reason.split()[1 if reason.startswith("lacks ") else 0] for reason in found.reasons}
    assert {"subgroup_size" if name == "subgroups" else name for name in named} == broken
    for reason in found.reasons:
        name, *rest = reason.split()
        if name in LIMITS:
            assert (rest[1], int(rest[2])) == (">", target.limits[name])
            assert int(rest[0]) > int(rest[2])
        elif name == "subgroup_size":
            assert rest[1] in ("!=", ">", "<")
            assert int(rest[0]) != int(rest[2])
        else:
            assert reason == f"lacks {rest[0]}"


@settings(max_examples=100, deadline=None)
@given(kernels(), profiles(), st.sampled_from(sorted(LIMITS)))
def test_a_limit_that_is_just_enough_is_enough(kernel: Shaped, target: Profile, name: str):
    """Raise one limit to exactly what is needed: it is no reason any more; one less: it is."""
    needs = check(kernel, CASE)
    if isinstance(needs, Drop):
        return
    needed = needs.limits[name]
    enough = replace(target, limits=target.limits | {name: needed})
    short = replace(target, limits=target.limits | {name: needed - 1})
    assert not _names(name, prune(needs, device("d", enough)))
    assert _names(name, prune(needs, device("d", short)))


def _names(name: str, found: Drop | None) -> bool:
    return found is not None and any(reason.split()[0] == name for reason in found.reasons)
