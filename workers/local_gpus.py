"""Which devices one machine has: the profiles of all its drivers, grouped by GPU (decision 0012)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.domain.device import Soc
from orchestrator.domain.profile import Profile
from workers.identity import local_soc, renderer_name


@dataclass(frozen=True, slots=True)
class LocalGpu:
    """One GPU, or one software driver, of this machine."""

    name: str
    """Unique on this machine: the SoC's name, with ``-2``, ``-3``, … for further GPUs of the same kind."""
    soc: Soc
    profiles: list[Profile]
    """At most one an API, GLES first."""
    by_default: bool
    """Served without being named: true but for software drivers of an API that a hardware GPU has."""

    @property
    def software(self) -> bool:
        return all(p.software for p in self.profiles)

    @property
    def title(self) -> str:
        """For people: what the driver calls the GPU, and the driver where that does not tell it."""
        renderer = self.profiles[-1].renderer
        if self.soc.name == "lavapipe":  # it calls itself llvmpipe, as Mesa's GLES driver does
            return f"lavapipe, {renderer}"
        number = self.name.removeprefix(self.soc.name).strip("-")
        return f"{renderer} (number {number})" if number else renderer


def group(profiles: Sequence[Profile]) -> list[LocalGpu]:
    """Hardware GPUs in the order of the Vulkan loader, then software drivers.

    A GPU that both APIs reach is one device: the GLES profile goes with the first Vulkan adapter that has its
    name. A driver that the loader lists twice counts once.
    """
    distinct = list({(p.api, p.adapter or i): p for i, p in enumerate(profiles)}.values())
    hardware = [[p] for p in distinct if p.api != "gles" and not p.software]
    for gles in (p for p in distinct if p.api == "gles" and not p.software):
        home = next((g for g in hardware if len(g) == 1 and _same_gpu(gles, g[0])), None)
        if home is None:
            hardware.append([gles])
        else:
            home.insert(0, gles)
    served = {p.api for gpu in hardware for p in gpu}
    seen = Counter[str]()
    found: list[LocalGpu] = []
    for gpu in [*hardware, *([p] for p in distinct if p.software)]:
        soc = local_soc(gpu[-1])
        seen[soc.name] += 1
        name = soc.name if seen[soc.name] == 1 else f"{soc.name}-{seen[soc.name]}"
        by_default = not gpu[0].software or gpu[0].api not in served
        found.append(LocalGpu(name, soc, gpu, by_default))
    return found


def of_phone(profiles: Sequence[Profile]) -> list[Profile]:
    """A phone is one device: its GLES profile and that of one Vulkan adapter, a GPU before a processor."""
    gles = [p for p in profiles if p.api == "gles"][:1]
    vulkan = sorted((p for p in profiles if p.api == "vulkan"), key=lambda p: p.software)[:1]
    return [*gles, *vulkan]


def _same_gpu(gles: Profile, vulkan: Profile) -> bool:
    """``NVIDIA H200/PCIe/SSE2`` and ``NVIDIA H200``; a layer such as ANGLE puts its own name in front."""
    ours, theirs = renderer_name(gles.renderer), renderer_name(vulkan.renderer)
    return bool(theirs) and (ours == theirs or ours.endswith(f"-{theirs}"))
