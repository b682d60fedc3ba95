"""Running a shader compiler of the host: its module, or what it says of the shader, for people."""

import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.domain.errors import ShaderRefused
from orchestrator.execution.module_cache import MAGIC

COMPILE_S = 60
"""A compiler that takes longer hangs."""
_SHOWN_ERRORS = 4


@dataclass(frozen=True, slots=True)
class Fault:
    """An error that a compiler tells."""

    what: str
    line: int | None = None
    """Of the rendered shader, from 1; None: it is about none."""


@dataclass(frozen=True, slots=True)
class HostCompiler:
    name: str
    """As errors name it."""
    faults: Callable[[str], Iterable[Fault]]
    """Those in what it printed."""
    environment: Mapping[str, str] | None = None
    """None: this process's own."""

    def run(
        self, command: Callable[[Path, Path], Sequence[str]], source: str, where: str, *, stdin: bool = False
    ) -> bytes:
        """The SPIR-V module of a shader.

        Args:
            command: from an empty folder and the module's path.
            where: names the template in errors.
            stdin: it reads the source there.

        Raises:
            ShaderRefused: the compiler hangs, ends with an error, or writes no module.
        """
        with tempfile.TemporaryDirectory(prefix="tilefarm-shader-") as folder:
            output = Path(folder) / "module.spv"
            try:
                done = subprocess.run(
                    command(Path(folder), output),
                    input=source if stdin else None,
                    capture_output=True,
                    text=True,
                    timeout=COMPILE_S,
                    check=False,
                    env=self.environment,
                )
            except subprocess.TimeoutExpired as e:
                raise ShaderRefused(
                    f"{where}: {self.name} took longer than {COMPILE_S} s; simplify the shader"
                ) from e
            if done.returncode != 0:
                why = self._explained(done.stdout + done.stderr, source, done.returncode)
                raise ShaderRefused(f"{where}: {why}")
            module = output.read_bytes() if output.is_file() else b""
        if not module.startswith(MAGIC):
            wrote = f"{len(module)} bytes that are no SPIR-V" if module else "nothing"
            raise ShaderRefused(f"{where}: {self.name} wrote {wrote}")
        return module

    def _explained(self, log: str, source: str, code: int) -> str:
        """The first errors, each with the numbered source line that it is about."""
        lines = source.splitlines()
        told = [self._told(fault, lines) for fault in self.faults(log)]
        if not told:
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            return f"{self.name} {how}: {log.strip()[:200] or 'no message'}"
        return "\n".join(told[:_SHOWN_ERRORS])

    def _told(self, fault: Fault, lines: Sequence[str]) -> str:
        if (number := fault.line) is None:
            return f"{self.name}: {fault.what}"
        source = f"\n  {number} | {lines[number - 1]}" if 0 < number <= len(lines) else ""
        return f"{self.name}, line {number} of the rendered shader: {fault.what}{source}"
