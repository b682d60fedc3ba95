"""A device made ready for work: the right runner installed, its GPU probed, its facts recorded."""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.device_check import checked_profile
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.errors import InfraError, NotInstalled, TruncatedOutput, WireError
from orchestrator.domain.limits import printable
from orchestrator.domain.profile import Profile
from workers.canary import Latencies
from workers.identity import is_virtual
from workers.result_stream import RESULT_FORMAT, ResultStream
from workers.transports.base import Device

PUSH_TIMEOUT_S = 120.0
PROBE_TIMEOUT_S = 600.0
"""For all APIs, GPUs and proofs together. The runner itself ends what hangs (60 s an opening, 20 s a proof),
so several hanging drivers must fit: a probe that is cut off here has no final record and no profile."""
CALL_TIMEOUT_S = 20.0
BLOB_QUOTA_BYTES = 1 << 30
_PRESET_OF_ABI = {
    "arm64-v8a": "android-arm64-v8a",
    "armeabi-v7a": "android-armeabi-v7a",
    "x86_64": "android-x86_64",
}
_PROFILE = TypeAdapter(Profile)


@dataclass(frozen=True, slots=True)
class Bench:
    """What a session needs to run batches."""

    device: Device
    record: DeviceRecord
    runner: str
    """Path of the installed runner on the device."""
    latencies: Latencies = field(default_factory=Latencies)
    """Of the canaries that this worker has run."""
    blob_quota: int = BLOB_QUOTA_BYTES
    """Blobs on the device may take so much beyond what one batch needs."""

    @property
    def adapter(self) -> str:
        """Which Vulkan adapter is this device; empty: it has no Vulkan, or an old runner did not say."""
        vulkan = self.record.profile("vulkan")
        return vulkan.adapter if vulkan else ""

    @property
    def enable(self) -> tuple[str, ...]:
        """Vulkan features that a probe shader proved: no other is ever switched on."""
        vulkan = self.record.profile("vulkan")
        return tuple(name for name, proven in vulkan.features.items() if proven) if vulkan else ()


def runner_build(properties: Mapping[str, str], runner_dir: Path) -> Path:
    """The build of the runner that this device executes.

    Raises:
        NotInstalled: not built yet; the message says how.
    """
    abi = properties.get("ro.product.cpu.abi", "")
    if not abi or is_virtual(properties):
        preset, how = "linux", "run `make runner`"
    elif abi in _PRESET_OF_ABI:
        preset = _PRESET_OF_ABI[abi]
        how = f"set ANDROID_NDK_HOME and run `make runner-android` (preset {preset})"
    else:
        raise NotInstalled(f"no runner for ABI {abi[:40]!r}; known: {', '.join(_PRESET_OF_ABI)}")
    path = runner_dir / preset / "tilefarm-runner"
    if not path.is_file():
        raise NotInstalled(f"runner for {abi or platform.machine()} is not built: {path} is missing; {how}")
    return path


def install_runner(device: Device, build: Path) -> str:
    """Push the runner unless the same build is there already; returns its path on the device."""
    data = build.read_bytes()
    folder = f"{device.workdir}/bin"
    name = f"tilefarm-runner-{sha256_hex(data)[:16]}"
    if device.list_dir(folder, timeout_s=CALL_TIMEOUT_S).get(name) != len(data):
        device.push(data, f"{folder}/{name}", timeout_s=PUSH_TIMEOUT_S, mode=0o755)
    return f"{folder}/{name}"


def probe(device: Device, runner: str) -> list[Profile]:
    """Run the runner's probe and read the profiles.

    Raises:
        InfraError: no driver, or output that is not whole.
    """
    result = device.run([runner, "probe"], timeout_s=PROBE_TIMEOUT_S)
    lines = result.stdout.splitlines(keepends=True)
    if result.exit_code != 0:
        # A device's words: no escape reaches a terminal.
        shown = repr((result.stderr.strip() or result.stdout)[-300:].strip())[2:-1]
        raise InfraError(
            f"{device.serial}: the runner found no GPU driver (exit code {result.exit_code}) {shown}. "
            "On Debian install libegl1 libgles2 libgl1-mesa-dri libvulkan1 mesa-vulkan-drivers; "
            "`tilefarm doctor` checks them"
        )
    stream = ResultStream(f"{device.serial}: probe")
    profiles: list[Profile] = []
    for line in lines:
        kind, _ = stream.feed(line)
        if kind == "profile":
            profiles.append(_profile(device.serial, line))
    stream.finish()
    return profiles


def _profile(serial: str, line: bytes) -> Profile:
    record = json.loads(line)
    if record.get("format") != RESULT_FORMAT:
        spoken = printable(str(record.get("format")), 40)
        raise TruncatedOutput(f"{serial}: probe speaks format {spoken}, not {RESULT_FORMAT}")
    try:
        profile = _PROFILE.validate_python({k: v for k, v in record.items() if k not in ("type", "format")})
        return checked_profile(profile)
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        raise TruncatedOutput(f"{serial}: bad profile: {first['loc']}: {first['msg']}") from e
    except WireError as e:
        raise TruncatedOutput(f"{serial}: {e}") from e
