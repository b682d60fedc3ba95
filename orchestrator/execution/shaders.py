"""Shaders of rendered cases on their way into the blob store: GLES as text, Vulkan as SPIR-V.

Compiling takes a tenth of a second a module, so distinct ones are compiled in a few threads, before anybody
waits for them. A module serves every case that renders to the same text, whatever its constants are.
"""

import os
import re
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.errors import ShaderRefused
from orchestrator.execution.slang import SlangCompiler
from orchestrator.execution.spirv import SpirvCompiler
from orchestrator.planning.kernel_folder import LoadedKernel
from orchestrator.planning.render import VULKAN, RenderedCase, RenderedPass
from orchestrator.storage.blobs import BlobStore

THREADS = 8
"""At most; the compiler is a process of its own a module."""


class Shaders:
    """A context: what was begun and nobody waited for is dropped at its end."""

    def __init__(self, store: BlobStore, compiler: SpirvCompiler) -> None:
        self._store = store
        self._compiler = compiler
        self._slang = SlangCompiler(compiler.modules)
        self._pool = ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1), thread_name_prefix="spirv")
        self._digests: dict[str, Future[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def begin(self, loaded: LoadedKernel, rendered: RenderedCase) -> None:
        """Compile what needs it and is not known yet, in the background."""
        for step in rendered.passes:
            if rendered.api == VULKAN:
                self._future(loaded, step)

    def digest(self, loaded: LoadedKernel, rendered: RenderedCase, step: RenderedPass) -> str:
        """The blob of a pass's shader, stored.

        Raises:
            ShaderRefused: it does not compile; the message starts with FILE:LINE or FILE.
        """
        if rendered.api != VULKAN:
            return self._store.put(step.glsl.encode("ascii"))
        return self._future(loaded, step).result()

    def _future(self, loaded: LoadedKernel, step: RenderedPass) -> Future[str]:
        key = sha256_hex(step.glsl.encode("ascii"))
        known = self._digests.get(key)
        if known is None:
            known = self._pool.submit(self._compile, loaded, step)
            self._digests[key] = known
        return known

    def _compile(self, loaded: LoadedKernel, step: RenderedPass) -> str:
        template = loaded.folder / step.template
        where = _shown(loaded, template)
        try:
            compiler = self._slang if step.is_slang else self._compiler
            return self._store.put(compiler.compile(step.glsl, where=where))
        except ShaderRefused as e:
            said = str(e)
            raise ShaderRefused(_origin(loaded, template, said) + said.removeprefix(where)) from e


def _origin(loaded: LoadedKernel, template: Path, said: str) -> str:
    """``FILE:LINE`` of the line that the first error quotes, of the template or what it may include.

    Only ``FILE`` where rendering made the line up or several lines read the same.
    """
    quoted = re.search(r"^  \d+ \| (.+)$", said, re.MULTILINE)
    if quoted is None:
        return _shown(loaded, template)
    others = (p for folder in loaded.template_folders for p in sorted(folder.glob("*.j2")) if p != template)
    found = [
        f"{_shown(loaded, path)}:{number}"
        for path in (template, *others)
        for number, line in enumerate(
            path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1
        )
        if line.strip() == quoted[1].strip()
    ]
    return found[0] if len(found) == 1 else _shown(loaded, template)


def _shown(loaded: LoadedKernel, path: Path) -> str:
    """From the folder of kernels on: a report reads the same wherever it was made."""
    return str(path.relative_to(loaded.folder.parent.parent))
