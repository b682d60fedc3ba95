"""Kernels as they are in the repository, and a bench that runs them on this machine's GPU driver."""

from pathlib import Path

import pytest

from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.drivers import DRIVERS, VULKAN_DRIVERS
from tests.kernels.harness import Bench, all_kernels

NAMES = ("attention_naive", "attention_flash")


@pytest.fixture(scope="session")
def kernels() -> dict[str, LoadedKernel]:
    return all_kernels()


@pytest.fixture(params=NAMES)
def loaded(request: pytest.FixtureRequest, kernels: dict[str, LoadedKernel]) -> LoadedKernel:
    """Each attention kernel in turn."""
    return kernels[request.param]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """On llvmpipe."""
    return Bench(tmp_path)


@pytest.fixture(params=VULKAN_DRIVERS)
def vulkan_bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """Each Vulkan driver in turn."""
    return Bench(tmp_path, request.param)


@pytest.fixture(params=DRIVERS)
def any_bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """Each driver in turn."""
    return Bench(tmp_path, request.param)
