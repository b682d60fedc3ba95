"""Pruning: nothing let through breaks a declared limit, nothing that fits is dropped, reasons are numbers."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.kernel import Buffer, Pass
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.prune import Drop, check, prune, shortfalls
from tests.unit.planning.toy import PHONE_LIMITS, TOY, device, profile

Size = tuple[int, int, int]


class Shaped(type(TOY)):
    """Passes, buffers and features as given."""

    def __init__(
        self, passes: tuple[Pass, ...], buffers: tuple[Buffer, ...], features: frozenset[str] = frozenset()
    ) -> None:
        self._passes, self._buffers, self._features = passes, buffers, features

    def passes(self, case: Case) -> tuple[Pass, ...]:
        del case
        return self._passes

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        del case
        return self._buffers

    def features(self, case: Case) -> frozenset[str]:
        del case
        return self._features


def case(tile: str = "16x16", precision: str = "fp32", **workload: AxisValue) -> Case:
    shape: dict[str, AxisValue] = {"seq": 64, "kv_seq": 64, "head_dim": 64, "heads": 1, "kv_heads": 1}
    axes: dict[str, AxisValue] = {"api": "gles", "precision": precision, "tile": tile, "vector": 4}
    return Case("attention_toy", "attention", shape | workload, axes)


def dropped(point: Case, **changes: int) -> tuple[str, ...]:
    found = prune(check(TOY, point), device("d", profile(limits=PHONE_LIMITS | changes)))
    return () if found is None else found.reasons


def test_a_tile_that_fits_only_in_half_precision():
    assert dropped(case("128x16", "fp32")) == ("shared_bytes 40960 > 16384",)
    assert dropped(case("32x16", "fp32")) == ()
    assert dropped(case("32x16", "fp16_storage")) == ()


def test_g1_15_a_work_group_over_the_limit_is_dropped_with_both_numbers():
    wide = Shaped((Pass("t", (32, 2, 32), (1, 1, 1), 0, ("q",)),), (Buffer("q", "out", "f32", 4),))
    assert shortfalls(needs(wide), profile(limits={"invocations": 1024})) == ("invocations 2048 > 1024",)
    square = Shaped((Pass("t", (16, 16, 1), (1, 1, 1), 0, ("q",)),), (Buffer("q", "out", "f32", 4),))
    found = prune(check(square, case()), device("d", profile(limits={"invocations": 128})))
    assert found == Drop(Verdict.UNSUPPORTED, ("invocations 256 > 128",))


def test_every_shortfall_is_named():
    assert dropped(case("128x16"), invocations=64, group_x=32) == (
        "shared_bytes 40960 > 16384",
        "invocations 128 > 64",
        "group_x 128 > 32",
    )


def test_a_missing_feature_and_an_advertised_one_that_did_not_run():
    half = check(TOY, case(precision="fp16_storage"))
    for features in ({}, {"pack_half": False}):
        found = prune(half, device("d", profile(features=features)))
        assert found == Drop(Verdict.UNSUPPORTED, ("lacks pack_half",))
    assert prune(half, device("d", profile(features={"pack_half": True}))) is None


def test_a_missing_api():
    point = replace(case(), axes=case().axes | {"api": "vulkan"})
    found = prune(check(TOY, point), device("d", profile()))
    assert found == Drop(Verdict.UNSUPPORTED, ("lacks api vulkan",))
    assert prune(check(TOY, point), device("d", profile(), profile(api="vulkan"))) is None


def test_what_no_device_can_run_is_invalid_whatever_the_device():
    found = prune(check(TOY, case(heads=3, kv_heads=2)), device("d", profile(limits={})))
    assert found == Drop(Verdict.INVALID, ("kv_heads 2 does not divide heads 3",))


def test_a_limit_that_is_not_declared_is_not_checked():
    assert prune(check(TOY, case("128x16")), device("d", profile(limits={}))) is None


def test_the_largest_of_all_passes_counts():
    passes = (
        Pass("a", (64, 1, 1), (7, 1, 1), 100, ("q", "s")),
        Pass("b", (8, 8, 2), (1, 9, 3), 4, ("s", "o", "q")),
    )
    buffers = (Buffer("q", "in", "f16", 3), Buffer("s", "scratch", "f32", 500), Buffer("o", "out", "u32", 1))
    assert needs(Shaped(passes, buffers)).limits == {
        "shared_bytes": 100,
        "invocations": 128,
        "group_x": 64,
        "group_y": 8,
        "group_z": 2,
        "count_x": 7,
        "count_y": 9,
        "count_z": 3,
        "storage_bindings": 3,
        "storage_bytes": 2000,
    }


def test_a_kernel_whose_code_fails_is_named_with_the_case():
    broken = Shaped((Pass("a", (1, 1, 1), (1, 1, 1), 0, ("nowhere",)),), ())
    with pytest.raises(
        KernelFolderError, match=r"kernels/attention_toy: passes.* failed for .*tile=16x16.*nowhere"
    ):
        check(broken, case())


def test_a_case_without_an_api_is_the_kernel_s_fault():
    with pytest.raises(KernelFolderError, match="no axis api"):
        check(TOY, replace(case(), axes={"precision": "fp32", "tile": "8x8", "vector": 1}))


def needs(kernel: Shaped):
    found = check(kernel, case())
    assert not isinstance(found, Drop)
    return found


SIZES = st.tuples(st.integers(1, 300), st.integers(1, 300), st.integers(1, 80))
GRIDS = st.tuples(st.integers(1, 70_000), st.integers(1, 70_000), st.integers(1, 70_000))
NAMES = ("a", "b", "c")
BUFFERS = st.tuples(*[st.integers(1, 40_000_000)] * 3).map(
    lambda counts: tuple(Buffer(n, "out", "f32", c) for n, c in zip(NAMES, counts, strict=True))
)
PASSES = st.lists(
    st.builds(
        Pass,
        st.just("t"),
        SIZES,
        GRIDS,
        st.integers(0, 70_000),
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=6).map(tuple),
    ),
    min_size=1,
    max_size=3,
).map(tuple)
LIMITS = st.fixed_dictionaries({}, optional={n: st.integers(1, 2 * v) for n, v in PHONE_LIMITS.items()})
FEATURES = st.frozensets(st.sampled_from(("pack_half", "timer_query")))
PROBED = st.dictionaries(st.sampled_from(("pack_half", "timer_query")), st.booleans())


def fits(
    passes: tuple[Pass, ...],
    buffers: tuple[Buffer, ...],
    features: frozenset[str],
    limits: Mapping[str, int],
    probed: Mapping[str, bool],
) -> bool:
    """The rule said another way: pass by pass, a limit at a time."""
    sizes = {b.name: b.nbytes for b in buffers}

    def within(name: str, value: int) -> bool:
        return name not in limits or value <= limits[name]

    for step in passes:
        x, y, z = step.workgroup
        gx, gy, gz = step.grid
        good = (
            within("shared_bytes", step.shared_bytes)
            and within("invocations", x * y * z)
            and (within("group_x", x) and within("group_y", y) and within("group_z", z))
            and (within("count_x", gx) and within("count_y", gy) and within("count_z", gz))
            and within("storage_bindings", len(step.buffers))
            and all(within("storage_bytes", sizes[name]) for name in step.buffers)
        )
        if not good:
            return False
    return all(probed.get(name, False) for name in features)


@given(PASSES, BUFFERS, FEATURES, LIMITS, PROBED)
def test_exactly_what_does_not_fit_is_dropped(
    passes: tuple[Pass, ...],
    buffers: tuple[Buffer, ...],
    features: frozenset[str],
    limits: dict[str, int],
    probed: dict[str, bool],
):
    kernel = Shaped(passes, buffers, features)
    found = prune(check(kernel, case()), device("d", profile(limits=limits, features=probed)))
    assert (found is None) is fits(passes, buffers, features, limits, probed)
    for reason in () if found is None else found.reasons:
        words = reason.split()
        if words[0] == "lacks":
            assert words[1] in features
            assert not probed.get(words[1], False)
        else:
            assert limits[words[0]] == int(words[3]) < int(words[1])
