"""Slang → SPIR-V on the host, by the slangc that the wheel slangtorch ships; cached as glslang's modules are.

``-O0``: optimised SPIR-V needs a library that this wheel leaves out. Drivers optimise all the same.
"""

import re
import struct
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from orchestrator.domain.errors import NotInstalled, ShaderRefused
from orchestrator.execution.module_cache import MAGIC, ModuleCache
from orchestrator.planning.slangc import MISSING, find_slangc

OPTIONS = ("-target", "spirv", "-profile", "spirv_1_3", "-O0", "-stage", "compute", "-entry", "main")
"""SPIR-V 1.3 is what Vulkan 1.1 takes."""
EDIT_VERSION = 1
"""Part of a module's key: raise it whenever what is changed in slangc's modules here changes."""
COMPILE_S = 60
"""A compiler that takes longer hangs."""
_SHOWN_ERRORS = 4
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
    with tempfile.TemporaryDirectory(prefix="tilefarm-slang-") as folder:
        source, output = Path(folder) / "shader.slang", Path(folder) / "module.spv"
        source.write_text(slang, encoding="ascii")
        try:
            done = subprocess.run(
                [str(program), str(source), *OPTIONS, "-o", str(output)],
                capture_output=True,
                text=True,
                timeout=COMPILE_S,
                check=False,
            )
        except subprocess.TimeoutExpired as e:
            raise ShaderRefused(f"{where}: slangc took longer than {COMPILE_S} s; simplify the shader") from e
        if done.returncode != 0:
            raise ShaderRefused(f"{where}: {_explained(done.stdout + done.stderr, slang, done.returncode)}")
        module = output.read_bytes() if output.is_file() else b""
    if not module.startswith(MAGIC):
        wrote = f"{len(module)} bytes that are no SPIR-V" if module else "nothing"
        raise ShaderRefused(f"{where}: slangc wrote {wrote}")
    return _without_language(module)


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


def _explained(log: str, slang: str, code: int) -> str:
    """The first errors, each with the numbered source line that it is about."""
    lines = slang.splitlines()
    found: list[str] = []
    # error[E30015]: what / --> FILE:LINE:COLUMN / the line / ^^^ which
    for message in re.split(r"^(?=error|warning)", log, flags=re.MULTILINE):
        error = re.match(r"error(?:\[\w+\])?: (.+)", message)
        if error is None:
            continue
        at = re.search(r"^ *--> .*?:(\d+):\d+$", message, re.MULTILINE)
        if at is None:
            found.append(f"slangc: {error[1]}")
            continue
        number = int(at[1])
        detail = re.search(r"\^+ (.+)$", message, re.MULTILINE)
        what = error[1] if detail is None else f"{error[1]}: {detail[1]}"
        source = f"\n  {number} | {lines[number - 1]}" if 0 < number <= len(lines) else ""
        found.append(f"slangc, line {number} of the rendered shader: {what}{source}")
    if not found:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"slangc {how}: {log.strip()[:200] or 'no message'}"
    return "\n".join(found[:_SHOWN_ERRORS])
