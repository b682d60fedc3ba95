"""Who may run a kernel for matrix units: an H200 as its driver described itself, and devices that lack one
thing of it (h200_vulkan.json, without paths and extensions)."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.profile import Profile, SubgroupFacts
from orchestrator.domain.wire import from_json
from orchestrator.planning.kernel_folder import load_kernels
from orchestrator.planning.prune import check, prune
from tests.kernels.harness import KERNELS, make_case
from tests.unit.planning.test_prune import half, needs
from tests.unit.planning.toy import device, profile

H200 = from_json(Profile, Path(__file__).with_name("h200_vulkan.json").read_bytes(), "h200_vulkan.json")
KERNEL = load_kernels(KERNELS)["attention_flash_matrix"].kernel
SHAPE = "16x16x16 f16 f16 f32 f32"
BIG: dict[str, AxisValue] = {"seq": 2048, "head_dim": 64, "heads": 32}


def reasons(target: Profile, workload: dict[str, AxisValue] = BIG, **axes: AxisValue) -> tuple[str, ...]:
    case: Case = make_case(KERNEL, workload, axes=axes)
    found = prune(check(KERNEL, case), device("d", target))
    return () if found is None else found.reasons


def without(feature: str) -> Profile:
    return replace(H200, features=H200.features | {feature: False})


@pytest.mark.parametrize("tile", ["16x16", "32x32", "64x32", "128x64"])
def test_an_h200_runs_it(tile: str):
    assert reasons(H200, tile=tile) == ()
    assert reasons(H200, BIG | {"head_dim": 128}, tile=tile) == ()


def test_a_tile_that_shared_memory_does_not_hold():
    too_large = reasons(H200, BIG | {"head_dim": 256}, tile="128x64")
    assert too_large == (f"shared_bytes {64 * 528 + 128 * (144 + 80)} > 49152",)


@pytest.mark.parametrize(
    "feature",
    [
        "cooperative_matrix", "float16", "storage16",
        "subgroup_basic", "subgroup_arithmetic", "subgroup_shuffle",
    ],
)  # fmt: skip
def test_each_feature_is_needed_and_one_reason_names_it(feature: str):
    assert reasons(without(feature)) == (f"lacks {feature}",)


def test_without_matrices_there_is_one_reason_and_not_one_a_shape():
    none = replace(without("cooperative_matrix"), matrices=[])
    assert reasons(none) == ("lacks cooperative_matrix",)


def test_matrices_of_other_shapes_are_not_enough():
    other = replace(H200, matrices=[shape for shape in H200.matrices if shape != SHAPE])
    assert len(other.matrices) == len(H200.matrices) - 1
    assert reasons(other) == (f"lacks matrix {SHAPE}",)


def test_other_subgroup_sizes_do_not_run_it_unless_32_can_be_asked_for():
    wide = replace(H200, subgroup=SubgroupFacts(64, 64, 64, 64))
    assert reasons(wide) == ("subgroup_size 32 < 64",)
    assert reasons(replace(wide, subgroup=SubgroupFacts(64, 64, 32, 64))) == ()


def test_a_software_driver_lacks_matrices_whatever_else_it_has():
    """As lavapipe: subgroups of 8, native halves, no matrices; even where its subgroups would do."""
    features = H200.features | {"cooperative_matrix": False}
    software = replace(H200, features=features, matrices=[], subgroup=SubgroupFacts(8, 8, 8, 8))
    assert reasons(software) == ("subgroup_size 32 > 8", "lacks cooperative_matrix")
    assert reasons(replace(software, subgroup=H200.subgroup)) == ("lacks cooperative_matrix",)


def test_gles_never_runs_it():
    assert reasons(profile()) == ("lacks api vulkan",)


def test_every_missing_shape_is_named_in_order():
    asked = replace(needs(half("cooperative_matrix")), matrices=frozenset({SHAPE, "16x8x8 f16 f16 f16 f16"}))
    target = profile(features={"cooperative_matrix": True})
    found = prune(asked, device("d", replace(target, matrices=[])))
    assert found is not None
    assert found.reasons == (f"lacks matrix {SHAPE}", "lacks matrix 16x8x8 f16 f16 f16 f16")
    assert prune(asked, device("d", replace(target, matrices=[SHAPE, "16x8x8 f16 f16 f16 f16"]))) is None
