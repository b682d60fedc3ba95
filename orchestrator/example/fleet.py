"""The example's phones: 12 of 5 SoCs, and one more that takes the place of one of them."""

from dataclasses import dataclass, field

from orchestrator.domain.device import DeviceRecord, Soc
from orchestrator.domain.profile import Profile, SubgroupFacts


@dataclass(frozen=True, slots=True)
class Chip:
    """A SoC and what its GPU sustains; round numbers of the class, not measurements."""

    soc: str
    vendor: str
    renderer: str
    gflops: float
    gbytes: float
    clock_mhz: tuple[int, int]
    """The state it works in, and the one that it falls into now and then."""
    shared_bytes: int
    subgroup: int
    models: tuple[str, ...]
    """One a phone."""
    features: tuple[str, ...] = ("float16", "storage16", "subgroup_basic", "subgroup_arithmetic")


CHIPS = (
    Chip("SM8650", "Qualcomm", "Adreno (TM) 750", 900, 60, (903, 680), 32_768, 64, ("Phone A",) * 3),
    Chip(
        "MT6989", "MediaTek", "Mali-G720-Immortalis MC12", 800, 58, (1300, 980), 32_768, 16, ("Phone B",) * 3
    ),
    Chip("Tensor-G3", "Google", "Mali-G715", 450, 45, (890, 572), 32_768, 16, ("Phone C",) * 2),
    Chip("S5E9945", "Samsung", "Xclipse 940", 700, 55, (1095, 800), 32_768, 32, ("Phone D",) * 2),
    Chip("SM6375", "Qualcomm", "Adreno (TM) 619", 110, 14, (900, 650), 16_384, 64, ("Phone E",) * 2),
)
SWAPPED_IN = "tensor-g3-9"
"""Takes the place of ``tensor-g3-2``, under the old one's name."""


@dataclass(frozen=True, slots=True)
class Phone:
    device_id: str
    chip: Chip
    name: str
    host: str = field(default="shelf-1")

    def record(self, driver: str, os_build: str) -> DeviceRecord:
        """As it registers in one night, with the driver of that night."""
        limits = {
            "shared_bytes": self.chip.shared_bytes, "invocations": 1024, "group_x": 1024, "group_y": 1024,
            "group_z": 64, "count_x": 65_535, "count_y": 65_535, "count_z": 65_535,
            "storage_bytes": 1 << 30, "storage_bindings": 8, "storage_align": 16,
        }  # fmt: skip
        chip = self.chip
        gles = Profile(
            "gles", chip.vendor, chip.renderer, f"OpenGL ES 3.2 V@{driver}", limits=limits,
            features={"pack_half": True, "timer_query": True}, timer_bits=64,
        )  # fmt: skip
        vulkan = Profile(
            "vulkan", chip.vendor, chip.renderer, f"Vulkan 1.3 V@{driver}", limits=limits,
            features=dict.fromkeys(chip.features, True) | {"timer_query": True},
            advertised=dict.fromkeys(chip.features, True),
            subgroup=SubgroupFacts(chip.subgroup, chip.subgroup), timer_bits=64, device_type="integrated",
        )  # fmt: skip
        return DeviceRecord(
            device_id=self.device_id,
            transport="adb",
            serial=f"EX{self.device_id.upper().replace('-', '')}",
            name=self.name,
            soc=Soc(chip.soc, chip.vendor, chip.soc, "ro.soc.model", "certain"),
            profiles=[gles, vulkan],
            resource=self.device_id,
            host=self.host,
            os_build=os_build,
            virtual=True,
            health={"battery": "98 %"},
        )


def phones() -> list[Phone]:
    """All that are there at first."""
    return [
        Phone(f"{chip.soc.lower()}-{n}", chip, f"{model} {n}", f"shelf-{1 + n % 2}")
        for chip in CHIPS
        for n, model in enumerate(chip.models, start=1)
    ]


def swapped_in() -> Phone:
    old = next(p for p in phones() if p.device_id == "tensor-g3-2")
    return Phone(SWAPPED_IN, old.chip, old.name, old.host)
