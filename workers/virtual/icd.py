"""Where this host's Vulkan loader finds the drivers that a virtual phone can borrow.

A driver announces itself by a JSON file (an ICD manifest). Only those that the loader would find are used:
in its folders, or named by its own variables, as VK_ADD_DRIVER_FILES does for SwiftShader.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

Driver = Literal["lavapipe", "swiftshader", "none"]

_FOLDERS = ("/etc", "/usr/local/share", "/usr/share")
"""The loader's defaults; XDG_DATA_DIRS replaces the latter two."""
_VARIABLES = ("VK_ADD_DRIVER_FILES", "VK_DRIVER_FILES", "VK_ICD_FILENAMES")
_FILES: Mapping[Driver, tuple[str, ...]] = {
    "lavapipe": ("lvp_icd",),
    "swiftshader": ("swiftshader", "lvp_icd"),
    "none": (),
}
"""What the names of their files hold, the one to be preferred first."""


def driver_environment(driver: Driver, absent: Path, host: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables by which the loader finds this driver and no other.

    A host without SwiftShader lends lavapipe instead; a host without that lends no Vulkan.

    Args:
        absent: a path where no file is.
    """
    manifests = _manifests(host)
    found = next((m for part in _FILES[driver] for m in manifests if part in m.name.casefold()), absent)
    # Two names of one variable: loaders before 1.3.207 know only the second.
    return {"VK_DRIVER_FILES": str(found), "VK_ICD_FILENAMES": str(found), "VK_ADD_DRIVER_FILES": ""}


def _manifests(host: Mapping[str, str]) -> list[Path]:
    named = [Path(p) for v in _VARIABLES for p in host.get(v, "").split(":") if p.endswith(".json")]
    data = [p for p in host.get("XDG_DATA_DIRS", "").split(":") if p]
    folders = [_FOLDERS[0], *(data or _FOLDERS[1:])]
    listed = [m for f in folders for m in sorted((Path(f) / "vulkan" / "icd.d").glob("*.json"))]
    return [m for m in [*named, *listed] if m.is_file()]
