"""Profiles of GPUs and drivers, as the runner's probe prints them."""

from dataclasses import replace

from orchestrator.domain.profile import Profile
from workers.discovery import Reachable
from workers.local_gpus import LocalGpu, group

LLVM = "llvmpipe (LLVM 15.0.6, 256 bits)"


def gles(renderer: str = LLVM) -> Profile:
    return Profile("gles", "Mesa", renderer, "OpenGL ES 3.2", library=f"/usr/lib/{renderer[:4]}-gles.so")


def vulkan(renderer: str = LLVM, adapter: str = "13-6d65", *, kind: str = "cpu") -> Profile:
    return Profile(
        "vulkan",
        "Mesa",
        renderer,
        "Vulkan 1.3",
        library=f"/usr/lib/{renderer[:4]}-vulkan.so",
        adapter=adapter,
        device_type=kind,
        driver={"id": adapter.partition("-")[0], "name": renderer[:8], "info": "", "conformance": "1.3.1.1"},
    )


def h200(number: int = 1) -> Profile:
    return vulkan("NVIDIA H200", f"4-{number:04x}", kind="discrete")


H200_GLES = gles("NVIDIA H200/PCIe/SSE2")
SWIFTSHADER = vulkan("SwiftShader Device (Subzero)", "10-5377")


def gpu(*profiles: Profile) -> LocalGpu:
    """The one GPU that these profiles are of."""
    (found,) = group(profiles)
    return found


def reachable(*profiles: Profile) -> Reachable:
    found = gpu(*profiles)
    return Reachable("local", f"local:{found.name}", gpu=found)


def without_facts(profile: Profile) -> Profile:
    """As an old runner prints it."""
    return replace(profile, adapter="", device_type="", driver={})
