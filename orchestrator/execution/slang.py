"""Slang → SPIR-V on the host, by the slangc that the wheel slangtorch ships; cached as glslang's modules are.

``-O0``: optimised SPIR-V needs a library that this wheel leaves out. Drivers optimise all the same.
"""

import re
import struct
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from orchestrator.domain.errors import NotInstalled
from orchestrator.execution.host_compiler import COMPILE_S, Fault, HostCompiler
from orchestrator.execution.module_cache import ModuleCache
from orchestrator.planning.slangc import MISSING, find_slangc

OPTIONS = ("-target", "spirv", "-profile", "spirv_1_3", "-O0", "-stage", "compute", "-entry", "main")
"""SPIR-V 1.3 is what Vulkan 1.1 takes."""
EDIT_VERSION = 1
"""Part of a module's key: raise it whenever what is changed in slangc's modules here changes."""
_HEADER_WORDS = 5
_OP_SOURCE = 3


class SlangCompiler:
    """Compiles compute shaders for Vulkan; safe to use from several threads and processes at once."""

    def __init__(self, modules: ModuleCache) -> None:
        self._modules = modules

    def compile(self, slang: str, *, where: str) -> bytes:
        """The module of a compute shader whose entry point is ``main``.

        Args:
            where: names the template in errors.

        Raises:
            ShaderRefused: the shader does not compile; with slangc's words and the source lines.
            NotInstalled: no slangc.
        """
        program = find_slangc()
        if program is None:
            raise NotInstalled(MISSING)
        made_by = ("slangc", slangc_version(program), OPTIONS, EDIT_VERSION, slang)
        return self._modules.get(made_by, lambda: _run(program, slang, where))


@cache
def slangc_version(program: Path) -> str:
    """As it tells it, e.g. ``2026.14.1``.

    Raises:
        NotInstalled: the program does not run here.
    """
    try:
        done = subprocess.run(
            [str(program), "-v"], capture_output=True, text=True, timeout=COMPILE_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as e:
        raise NotInstalled(f"{program} does not run: {e}. {MISSING.partition(': ')[2]}") from e
    return (done.stdout + done.stderr).strip()


def _run(program: Path, slang: str, where: str) -> bytes:
    def command(folder: Path, output: Path) -> list[str]:
        source = folder / "shader.slang"
        source.write_text(slang, encoding="ascii")
        return [str(program), str(source), *OPTIONS, "-o", str(output)]

    return _without_language(HostCompiler("slangc", _faults).run(command, slang, where))


def _without_language(module: bytes) -> bytes:
    """OpSource, which is for debuggers, says Slang with a number, 11, for which older validators refuse the
    whole module: let it say that the language is not known (SPIR-V specification, section 3.2)."""
    words = list(struct.unpack(f"<{len(module) // 4}I", module))
    at = _HEADER_WORDS
    while at < len(words) and (length := words[at] >> 16) > 0:
        if words[at] & 0xFFFF == _OP_SOURCE:
            words[at + 1] = 0
        at += length
    return struct.pack(f"<{len(words)}I", *words)


def _faults(log: str) -> Iterator[Fault]:
    # error[E30015]: what / --> FILE:LINE:COLUMN / the line / ^^^ which
    for message in re.split(r"^(?=error|warning)", log, flags=re.MULTILINE):
        error = re.match(r"error(?:\[\w+\])?: (.+)", message)
        if error is None:
            continue
        at = re.search(r"^ *--> .*?:(\d+):\d+$", message, re.MULTILINE)
        if at is None:
            yield Fault(error[1])
            continue
        detail = re.search(r"\^+ (.+)$", message, re.MULTILINE)
        yield Fault(error[1] if detail is None else f"{error[1]}: {detail[1]}", int(at[1]))
