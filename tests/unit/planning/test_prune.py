"""Pruning: nothing let through breaks a declared limit, nothing that fits is dropped, reasons are numbers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.kernel import Buffer, Pass, Subgroups
from orchestrator.domain.profile import SubgroupFacts
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.prune import GUARANTEED, Drop, Needs, check, prune, shortfalls
from tests.unit.planning.toy import PHONE_LIMITS, TOY, Shaped, device, profile


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


def test_a_limit_that_is_not_declared_counts_as_the_guaranteed_minimum():
    """Nothing known to be too large is sent, and what every GPU can run is not held back."""
    found = prune(check(TOY, case("128x16")), device("d", profile(limits={})))
    assert found is not None
    assert found.reasons == ("shared_bytes 40960 > 16384 (not declared: the guaranteed minimum)",)
    assert prune(check(TOY, case("32x16")), device("d", profile(limits={}))) is None
    assert dict(GUARANTEED) == PHONE_LIMITS


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
    class Broken(Shaped):
        def features(self, case: Case) -> frozenset[str]:
            raise LookupError("nowhere")

    broken = Broken((Pass("a", (1, 1, 1), (1, 1, 1), 0, ("q",)),), (Buffer("q", "out", "f32", 1),))
    with pytest.raises(
        KernelFolderError, match=r"kernels/attention_toy: passes.* failed for .*tile=16x16.*nowhere"
    ):
        check(broken, case())


class Wrong(Shaped):
    """Right for every case but those of tile 16x16."""

    answers: Mapping[str, object] = {}

    def _answer(self, method: str, case: Case, right: Any) -> Any:
        return self.answers.get(method, right) if case.axes["tile"] == "16x16" else right

    def invalid(self, case: Case) -> str | None:
        return self._answer("invalid", case, None)

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        return self._answer("buffers", case, super().buffers(case))

    def features(self, case: Case) -> frozenset[str]:
        return self._answer("features", case, super().features(case))


@pytest.mark.parametrize(
    ("method", "answer", "says"),
    [
        ("invalid", False, "invalid gives False; give the reason as text, or None where the case can run"),
        ("buffers", (), "passes: a binds ['q']; buffers has []"),
        ("buffers", (Buffer("q", "out", "f32", 0),), "buffers: q: count is 0; give an int of 1 or more"),
        ("features", "float16", "features gives 'float16'; give a frozenset of texts"),
    ],
)
def test_a_wrong_answer_for_some_case_names_it(method: str, answer: object, says: str):
    """The small case of loading is right, so this is found when the case is planned."""
    kernel = Wrong((Pass("a", (1, 1, 1), (1, 1, 1), 0, ("q",)),), (Buffer("q", "out", "f32", 1),))
    kernel.answers = {method: answer}
    assert isinstance(check(kernel, case("8x8")), Needs)
    with pytest.raises(KernelFolderError) as caught:
        check(kernel, case("16x16"))
    assert str(caught.value) == f"kernels/attention_toy/kernel.py: {says} (case {case('16x16').label})"


def test_a_case_without_an_api_is_the_kernel_s_fault():
    with pytest.raises(KernelFolderError, match="no axis api"):
        check(TOY, replace(case(), axes={"precision": "fp32", "tile": "8x8", "vector": 1}))


def needs(kernel: Shaped):
    found = check(kernel, case())
    assert not isinstance(found, Drop)
    return found


def test_every_bound_range_counts_as_the_device_rounds_it():
    buffers = (Buffer("q", "in", "f32", 8), Buffer("k", "in", "f16", 101))
    kernel = Shaped((Pass("a", (1, 1, 1), (1, 1, 1), 0, ("q", "k")),), buffers)
    found = shortfalls(needs(kernel), profile(limits=PHONE_LIMITS | {"storage_bytes": 203}))
    assert found == ("storage_bytes 204 > 203",), "101 halves take 202 bytes, 204 on the device"
    assert shortfalls(needs(kernel), profile(limits=PHONE_LIMITS | {"storage_bytes": 204})) == ()


@pytest.mark.parametrize("axis", "xyz")
@pytest.mark.parametrize("what", ["group", "count"])
def test_each_dimension_has_a_limit_of_its_own(axis: str, what: str):
    size = {"x": (9, 1, 1), "y": (1, 9, 1), "z": (1, 1, 9)}[axis]
    group, grid = (size, (1, 1, 1)) if what == "group" else ((1, 1, 1), size)
    kernel = Shaped((Pass("a", group, grid, 0, ("q",)),), (Buffer("q", "out", "f32", 1),))
    name = f"{what}_{axis}"
    assert shortfalls(needs(kernel), profile(limits=PHONE_LIMITS | {name: 8})) == (f"{name} 9 > 8",)
    assert shortfalls(needs(kernel), profile(limits=PHONE_LIMITS | {name: 9})) == ()


def tiled(size: int, count: int, invocations: int) -> Shaped:
    step = Pass("a", (invocations, 1, 1), (1, 1, 1), 0, ("q",), subgroups=Subgroups(size, count))
    return Shaped((step,), (Buffer("q", "out", "f32", 1),))


def test_g1_07_a_tiling_that_needs_more_subgroups_than_the_work_group_holds_is_invalid():
    """G1-07: (BM/WM) × (BN/WN) subgroups, and workgroup ÷ subgroup size of them: unequal is no failure of a
    device but a variant that nobody can run."""
    broken = tiled(size=32, count=8, invocations=128)
    for limits in (PHONE_LIMITS, PHONE_LIMITS | {"invocations": 1024}):
        found = prune(check(broken, case()), device("d", profile(limits=limits)))
        assert found == Drop(Verdict.INVALID, ("subgroups 8 != 4",))
    odd = check(tiled(size=32, count=3, invocations=100), case())
    assert odd == Drop(Verdict.INVALID, ("subgroups 3 != 3.125",))
    assert check(tiled(24, 2, 48), case()) == Drop(Verdict.INVALID, ("subgroup_size 24 is no power of two",))


@pytest.mark.parametrize(
    ("size", "facts", "control", "reasons"),
    [
        (8, SubgroupFacts(8, 8), False, ()),
        (8, SubgroupFacts(8), False, ()),
        (32, SubgroupFacts(8, 8), False, ("subgroup_size 32 != 8",)),
        (128, SubgroupFacts(128, 64), False, ("subgroup_size 128 != 64",)),
        (64, SubgroupFacts(128, 64), False, ("subgroup_size 64 != 128",)),
        (64, SubgroupFacts(128, 128, 64, 128), True, ()),
        (64, SubgroupFacts(128, 128, 64, 128), False, ("subgroup_size 64 != 128",)),
        (64, SubgroupFacts(32, 32, 8, 32), True, ("subgroup_size 64 > 32",)),
        (4, SubgroupFacts(32, 32, 8, 32), True, ("subgroup_size 4 < 8",)),
        (32, SubgroupFacts(), False, ("lacks subgroups",)),
    ],
)
def test_g1_07_a_fixed_subgroup_size_needs_a_device_that_runs_it(
    size: int, facts: SubgroupFacts, control: bool, reasons: tuple[str, ...]
):
    """G1-07: advertised and measured sizes are two facts; where they differ, the advertised one is a lie."""
    target = replace(profile(features={"subgroup_size_control": control}), subgroup=facts)
    assert shortfalls(needs(tiled(size, 1, size)), target) == reasons


def half(*features: str) -> Shaped:
    step = Pass("a", (8, 1, 1), (1, 1, 1), 0, ("q",))
    return Shaped((step,), (Buffer("q", "out", "f16", 8),), frozenset(features))


def test_g1_23_each_16_bit_capability_is_a_fact_of_its_own():
    """G1-23: arithmetic only; storage only; both advertised, and the compiler aborts on the probe."""
    storage, arithmetic = needs(half("storage16")), needs(half("float16"))
    both, uniform = needs(half("float16", "storage16")), needs(half("float16", "storage16", "uniform16"))
    only_arithmetic = profile(features={"float16": True, "storage16": False}, api="vulkan")
    only_storage = profile(features={"float16": False, "storage16": True}, api="vulkan")
    aborts = replace(
        profile(features={"float16": False, "storage16": False}, api="vulkan"),
        advertised={"float16": True, "storage16": True},
        unproven={"float16": "ended by signal 6\x1b[31m", "storage16": "ended by signal 6"},
    )
    assert [shortfalls(n, only_arithmetic) for n in (arithmetic, storage, both)] == [
        (),
        ("lacks storage16",),
        ("lacks storage16",),
    ]
    assert [shortfalls(n, only_storage) for n in (arithmetic, storage, both)] == [
        ("lacks float16",),
        (),
        ("lacks float16",),
    ]
    assert shortfalls(uniform, profile(features={"float16": True, "storage16": True})) == ("lacks uniform16",)
    assert shortfalls(both, aborts) == (
        "lacks float16 (advertised; its probe: ended by signal 6\\u001b[31m)",
        "lacks storage16 (advertised; its probe: ended by signal 6)",
    )
