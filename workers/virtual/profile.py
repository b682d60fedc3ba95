"""What a virtual phone claims to be: a YAML file, checked with errors that name the place."""

from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from orchestrator.domain.errors import UsageError
from workers.virtual.faults import Fault, parse_fault
from workers.virtual.icd import Driver


def _fault(value: object) -> object:
    try:
        return parse_fault(value) if isinstance(value, str) else value
    except UsageError as e:
        raise ValueError(str(e)) from e


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


Feature = Literal[
    "float16",
    "storage16",
    "uniform16",
    "push16",
    "io16",
    "subgroup_basic",
    "subgroup_arithmetic",
    "subgroup_shuffle",
    "subgroup_size_control",
    "float_controls",
    "cooperative_matrix",
]
"""Of Vulkan, by the names of docs/wire-formats.md."""


class Gpu(_Strict):
    """Declared limits; the real runner is held to them through TILEFARM_IMPOSE, in both APIs."""

    renderer: str
    """What the phone's own driver would call itself; the driver that runs is the host's."""
    shared_bytes: int = Field(gt=0)
    invocations: int = Field(gt=0)
    group: tuple[int, int, int]
    vulkan: Driver = "lavapipe"
    """Which of this host's Vulkan drivers executes; ``none``: the phone has only GLES. Where SwiftShader is
    not installed, lavapipe stands in for it, under the same limits."""
    without: list[Feature] = []
    """Features that are taken from the driver, whatever it has."""

    def impose(self) -> str:
        """Value of TILEFARM_IMPOSE, see docs/wire-formats.md."""
        x, y, z = self.group
        limits = {
            "shared_bytes": self.shared_bytes,
            "invocations": self.invocations,
            "group_x": x,
            "group_y": y,
            "group_z": z,
        }
        return ",".join(
            f"{name}={value}" for name, value in (limits | dict.fromkeys(self.without, 0)).items()
        )


class Adb(_Strict):
    """How the phone's adbd speaks."""

    features: list[str] = ["shell_v2", "fixed_push_mkdir"]
    crlf: bool = False
    """The shell's output passes a terminal that turns LF into CR LF."""
    max_payload: int = Field(default=256 * 1024, ge=4096, le=1024 * 1024)
    old_protocol: bool = False
    """Version 0x01000000: checksums, as up to Android 8."""
    ask_key: bool = False
    """Ask the host for its key (AUTH) and accept it."""


class PhoneProfile(_Strict):
    name: str = Field(pattern=r"^[a-z0-9-]+$")
    serial: str
    props: dict[str, str]
    gpu: Gpu
    adb: Adb = Adb()
    dumpsys: dict[str, str] = {}
    settings: dict[str, str] = {}
    """``NAMESPACE/KEY`` → value."""
    missing_tools: list[str] = []
    """Programs of the host that this phone lacks."""
    faults: list[Annotated[Fault, BeforeValidator(_fault)]] = []


def shipped_profiles() -> dict[str, Path]:
    """Profiles that come with Tilefarm, by name."""
    folder = Path(str(resources.files("workers.virtual"))) / "profiles"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def load_profile(name: str) -> PhoneProfile:
    """A shipped profile by name, or a file by path.

    Raises:
        UsageError: no such profile, or everything that is wrong with it.
    """
    shipped = shipped_profiles()
    path = shipped.get(name) or Path(name)
    if not path.is_file():
        near = get_close_matches(name, shipped, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"{name!r}: no such phone profile.{hint} Shipped: {', '.join(shipped)}; or a file.")
    try:
        yaml: Any = YAML(typ="safe", pure=True)  # ruamel's load is untyped
        loaded: object = yaml.load(path)
    except YAMLError as e:
        raise UsageError(f"{path}: not YAML: {e}") from e
    try:
        return PhoneProfile.model_validate(loaded)
    except ValidationError as e:
        problems = [f"{path.name}: {'.'.join(map(str, p['loc'])) or '(top)'}: {p['msg']}" for p in e.errors()]
        raise UsageError("\n".join(problems)) from e
