"""The three software drivers that the kernels are tested on, and what each proved to be able to do.

llvmpipe speaks GLES, lavapipe and SwiftShader speak Vulkan; Vulkan always runs under the validation layer,
and whatever that says fails the case (TILEFARM_VALIDATE).
"""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Kernel
from orchestrator.planning.prune import Drop, check

ROOT = Path(__file__).resolve().parents[2]
RUNNER_VARIABLE = "TILEFARM_TEST_RUNNER"
DRIVERS = ("llvmpipe", "lavapipe", "swiftshader")
VULKAN_DRIVERS = DRIVERS[1:]
OWN_GPU = ("gpu-gles", "gpu-vulkan")
"""This machine's own GPU, for tables; no test needs one, and no validation layer runs."""
_MANIFESTS = {
    "lavapipe": ("/usr/share/vulkan/icd.d", "lvp_icd*.json", "mesa-vulkan-drivers"),
    "swiftshader": ("/usr/lib/chromium", "vk_swiftshader_icd.json", "chromium"),
}
"""Folder and name of the file by which the Vulkan loader finds a driver, and Debian's package of it."""
_PROBE_S = 120.0


@dataclass(frozen=True)
class Driver:
    name: str
    api: str
    environment: Mapping[str, str]
    limits: Mapping[str, int]
    features: frozenset[str]
    """Proven by the runner's probe."""

    def refuses(self, kernel: Kernel, case: Case) -> str | None:
        """Why this driver cannot run the case, or None."""
        needs = check(kernel, case)
        if isinstance(needs, Drop):
            return needs.reasons[0]
        if needs.api != self.api:
            return f"api {needs.api}"
        if missing := needs.features - self.features:
            return f"lacks {', '.join(sorted(missing))}"
        over = [f"{n} {v} > {self.limits[n]}" for n, v in needs.limits.items() if v > self.limits.get(n, v)]
        return over[0] if over else None


def runner_path() -> Path:
    """The runner that the Makefile builds, or the one that TILEFARM_TEST_RUNNER names."""
    named = os.environ.get(RUNNER_VARIABLE)
    path = Path(named) if named else ROOT / "workers" / "runner" / "build" / "linux" / "tilefarm-runner"
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no runner. Build it with `make runner` or set {RUNNER_VARIABLE}.")
    return path


@cache
def driver(name: str) -> Driver:
    """A driver by name, probed once.

    Raises:
        FileNotFoundError: the driver, or the runner, is not installed.
    """
    api = "vulkan" if name in (*_MANIFESTS, "gpu-vulkan") else "gles"
    environment = {**os.environ, **_choice(name)}
    done = subprocess.run(
        [str(runner_path()), "probe", "--api", api],
        capture_output=True,
        text=True,
        timeout=_PROBE_S,
        check=True,
        env=environment,
    )
    records = [json.loads(line) for line in done.stdout.splitlines()]
    (profile,) = [r for r in records if r["type"] == "profile"]
    proven = frozenset(feature for feature, ok in profile["features"].items() if ok)
    return Driver(name, api, environment, profile["limits"], proven)


def _choice(name: str) -> dict[str, str]:
    """Variables by which the Vulkan loader finds this driver and no other."""
    if name not in _MANIFESTS:
        return {}
    folder, pattern, package = _MANIFESTS[name]
    found = sorted(Path(folder).glob(pattern))
    if not found:
        raise FileNotFoundError(f"{folder}/{pattern}: no {name}. Install the package {package}.")
    # Loaders before 1.3.207 know only the older one of the first two names.
    names = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
    return {**dict.fromkeys(names, str(found[0])), "VK_ADD_DRIVER_FILES": "", "TILEFARM_VALIDATE": "1"}
