"""What doctor says of this machine's GPUs and drivers."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from orchestrator.cli import doctor
from orchestrator.cli.doctor import Check, gpus
from orchestrator.domain.profile import Profile
from orchestrator.domain.settings import Settings
from tests.unit.workers import gpus as made
from workers.discovery import Reachable
from workers.local_gpus import group

Rows = Callable[..., dict[str, Check]]


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Rows:
    """Rows of a machine with these profiles, by what they are about."""

    def examine(*profiles: Profile) -> dict[str, Check]:
        def found(_settings: Settings) -> list[Reachable]:
            return [Reachable("local", f"local:{g.name}", gpu=g) for g in group(profiles)]

        monkeypatch.setattr(doctor, "local_gpus", found)
        return {check.what: check for check in gpus(Settings())}

    return examine


def test_each_gpu_and_driver_is_a_row(rows: Rows) -> None:
    found = rows(made.H200_GLES, made.h200(), made.vulkan())
    assert found["local:NVIDIA-H200"].state == "ok"
    assert "gles: NVIDIA H200/PCIe/SSE2" in found["local:NVIDIA-H200"].found
    assert "vulkan: NVIDIA H200" in found["local:NVIDIA-H200"].found
    assert found["local:NVIDIA-H200"].fix == ""
    assert "only when it is named: --device local:lavapipe" in found["local:lavapipe"].fix


def test_how_to_get_swiftshader_is_told_until_it_is_there(rows: Rows) -> None:
    assert "VK_ADD_DRIVER_FILES=" in rows(made.vulkan())["Vulkan drivers"].fix
    assert rows(made.vulkan(), made.SWIFTSHADER)["Vulkan drivers"].fix == ""


def test_no_vulkan_is_a_warning_with_the_package(rows: Rows) -> None:
    found = rows(made.gles())["Vulkan drivers"]
    assert (found.state, "mesa-vulkan-drivers" in found.fix) == ("warning", True)


def test_an_advertised_feature_that_was_not_proven_is_told(rows: Rows) -> None:
    lying = replace(made.vulkan(), unproven={"float16": "the driver crashed with signal 6"})
    found = rows(lying)["local:lavapipe"]
    assert found.state == "warning"
    assert "vulkan float16 (the driver crashed with signal 6)" in found.found
