"""Shaders of rendered cases on their way into the blob store: GLES as text, Vulkan as SPIR-V.

Compiling takes a tenth of a second a module, so distinct ones are compiled in a few threads, before anybody
waits for them. A module serves every case that renders to the same text, whatever its constants are.
"""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from orchestrator.domain.digest import sha256_hex
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
        self._pool = ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1), thread_name_prefix="glslang")
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
            KernelFolderError: it does not compile.
        """
        if rendered.api != VULKAN:
            return self._store.put(step.glsl.encode("ascii"))
        return self._future(loaded, step).result()

    def _future(self, loaded: LoadedKernel, step: RenderedPass) -> Future[str]:
        key = sha256_hex(step.glsl.encode("ascii"))
        known = self._digests.get(key)
        if known is None:
            known = self._pool.submit(self._compile, step.glsl, str(loaded.folder / step.template))
            self._digests[key] = known
        return known

    def _compile(self, glsl: str, where: str) -> str:
        return self._store.put(self._compiler.compile(glsl, where=where))
