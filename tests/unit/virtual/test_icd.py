"""Which Vulkan driver of the host a virtual phone borrows."""

from pathlib import Path

import pytest

from workers.virtual.icd import Driver, driver_environment


def host(folder: Path, *manifests: str, added: str = "") -> dict[str, str]:
    """Environment of a host whose loader finds these files, in its data folder and by its variable."""
    icds = folder / "data" / "vulkan" / "icd.d"
    icds.mkdir(parents=True)
    for name in manifests:
        (icds / name).write_text("{}")
    if added:
        (folder / added).write_text("{}")
    variable = f"/nowhere/nothing.json:{folder / added}" if added else ""
    return {"XDG_DATA_DIRS": str(folder / "data"), "VK_ADD_DRIVER_FILES": variable}


@pytest.mark.parametrize(
    ("driver", "added", "found"),
    [
        ("lavapipe", "", "data/vulkan/icd.d/lvp_icd.x86_64.json"),
        ("lavapipe", "vk_swiftshader_icd.json", "data/vulkan/icd.d/lvp_icd.x86_64.json"),
        ("swiftshader", "vk_swiftshader_icd.json", "vk_swiftshader_icd.json"),
        ("swiftshader", "", "data/vulkan/icd.d/lvp_icd.x86_64.json"),
        ("none", "", "absent.json"),
    ],
)
def test_the_loader_is_shown_one_driver(tmp_path: Path, driver: Driver, added: str, found: str):
    environment = host(tmp_path, "intel_icd.x86_64.json", "lvp_icd.x86_64.json", added=added)
    made = driver_environment(driver, tmp_path / "absent.json", environment)
    assert made["VK_DRIVER_FILES"] == made["VK_ICD_FILENAMES"] == str(tmp_path / found)
    assert made["VK_ADD_DRIVER_FILES"] == "", "the host's own would come on top"


def test_a_host_without_vulkan_lends_none(tmp_path: Path):
    made = driver_environment("swiftshader", tmp_path / "absent.json", host(tmp_path))
    assert made["VK_DRIVER_FILES"] == str(tmp_path / "absent.json")
