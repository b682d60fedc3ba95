"""Several GPUs and drivers of one machine are several devices (decision 0012)."""

import pytest

from orchestrator.domain.profile import Profile
from tests.unit.workers.gpus import H200_GLES, SWIFTSHADER, gles, h200, vulkan, without_facts
from workers.local_gpus import group, of_phone


def seen(*profiles: Profile) -> list[tuple[str, str, bool]]:
    """Name, APIs and whether it is served by default."""
    return [(g.name, "+".join(p.api for p in g.profiles), g.by_default) for g in group(profiles)]


def test_each_software_driver_is_a_device():
    assert seen(gles(), vulkan(), SWIFTSHADER) == [
        ("llvmpipe", "gles", True),
        ("lavapipe", "vulkan", True),
        ("SwiftShader", "vulkan", True),
    ]


def test_a_gpu_with_both_apis_is_one_device_and_software_drivers_wait_to_be_named():
    assert seen(H200_GLES, h200(), vulkan()) == [
        ("NVIDIA-H200", "gles+vulkan", True),
        ("lavapipe", "vulkan", False),
    ]


def test_a_software_driver_of_an_api_that_the_gpu_lacks_is_served():
    assert seen(H200_GLES, vulkan()) == [("NVIDIA-H200", "gles", True), ("lavapipe", "vulkan", True)]
    assert seen(gles(), h200()) == [("NVIDIA-H200", "vulkan", True), ("llvmpipe", "gles", True)]


def test_identical_gpus_have_numbers_and_one_soc():
    found = group([H200_GLES, h200(1), h200(2), h200(3)])
    assert [g.name for g in found] == ["NVIDIA-H200", "NVIDIA-H200-2", "NVIDIA-H200-3"]
    assert {g.soc.name for g in found} == {"NVIDIA-H200"}, "they are compared as one SoC"
    assert [len(g.profiles) for g in found] == [2, 1, 1], "GLES goes with the first"
    assert [g.title for g in found][1:] == ["NVIDIA H200 (number 2)", "NVIDIA H200 (number 3)"]


@pytest.mark.parametrize(
    ("in_gles", "in_vulkan"),
    [
        ("NVIDIA H200/PCIe/SSE2", "NVIDIA H200"),
        ("Mesa Intel(R) UHD Graphics 620 (KBL GT2)", "Intel(R) UHD Graphics 620 (KBL GT2)"),
        ("AMD Radeon RX 6800 (navi21, LLVM 15.0.6, DRM 3.49)", "AMD Radeon RX 6800 (RADV NAVI21)"),
        ("ANGLE (NVIDIA, Vulkan 1.3.242 (NVIDIA GeForce RTX 3080 (0x2206)), x)", "NVIDIA GeForce RTX 3080"),
    ],
)
def test_one_gpu_by_its_two_names(in_gles: str, in_vulkan: str):
    other = vulkan("AMD Radeon Pro W7900 (RADV NAVI31)", "3-01", kind="discrete")
    (first, second) = group([gles(in_gles), other, vulkan(in_vulkan, "4-02", kind="integrated")])
    assert [len(first.profiles), len(second.profiles)] == [1, 2]


def test_a_driver_that_the_loader_lists_twice_counts_once():
    assert seen(vulkan(), vulkan()) == [("lavapipe", "vulkan", True)]


def test_no_gpu_has_two_gles_profiles():
    found = group([H200_GLES, H200_GLES, h200(1), h200(2)])
    assert [[p.api for p in g.profiles] for g in found] == [["gles", "vulkan"]] * 2


def test_profiles_without_an_adapter_are_kept_apart():
    assert len(group([without_facts(vulkan()), without_facts(SWIFTSHADER)])) == 2


def test_an_unknown_driver_that_executes_on_the_processor_is_software():
    (found,) = group([vulkan("PoCL of the future", "99-1", kind="cpu")])
    assert found.software
    assert found.profiles[0].software


def test_lavapipe_is_not_titled_as_llvmpipe_is():
    titles = [g.title for g in group([gles(), vulkan()])]
    assert titles == ["llvmpipe (LLVM 15.0.6, 256 bits)", "lavapipe, llvmpipe (LLVM 15.0.6, 256 bits)"]


@pytest.mark.parametrize(
    ("profiles", "adapters"),
    [
        (
            [gles("Adreno (TM) 750"), vulkan(), vulkan("Adreno (TM) 750", "8-1", kind="integrated")],
            ["", "8-1"],
        ),
        ([gles(), vulkan(), SWIFTSHADER], ["", "13-6d65"]),
        ([vulkan("Adreno (TM) 750", "8-1", kind="integrated")], ["8-1"]),
        ([], []),
    ],
)
def test_a_phone_is_one_device_with_its_gpu_before_a_processor(profiles: list[Profile], adapters: list[str]):
    assert [p.adapter for p in of_phone(profiles)] == adapters
