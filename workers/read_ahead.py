"""Blobs are read from the store while earlier ones are pushed: a store far away is waited for once."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from orchestrator.domain.buffer import ELEMENT_BYTES, REFERENCE_BYTES
from orchestrator.domain.job import CaseJob

THREADS = 4
HELD_BYTES = 64 << 20
"""Read and not yet pushed, at most; a larger blob is read alone."""
_SHADER_BYTES = 64 << 10
"""A guess: a job does not tell how long its shaders are."""


class Source(Protocol):
    """Where blobs come from (``orchestrator.storage.blobs.BlobStore``)."""

    def get(self, digest: str) -> bytes: ...


def sizes(cases: Iterable[CaseJob]) -> dict[str, int]:
    """Digest → bytes of what the cases need."""
    found: dict[str, int] = {}
    for case in cases:
        counts = {b.name: b.count for b in case.buffers}
        found |= {p.shader: _SHADER_BYTES for p in case.passes}
        found |= {b.blob: b.count * ELEMENT_BYTES[b.dtype] for b in case.buffers if b.blob is not None}
        found |= {c.reference: counts[c.buffer] * REFERENCE_BYTES for c in case.checks}
    return found


def read_ahead(
    store: Source, digests: Iterable[str], expected: Mapping[str, int], held_bytes: int = HELD_BYTES
) -> Iterator[tuple[str, bytes]]:
    """Digest and bytes of each, in order.

    Raises:
        InfraError: one cannot be read; those before it were given.
    """
    left = deque(digests)
    if len(left) == 1:
        yield left[0], store.get(left[0])
        return
    reading: deque[tuple[str, Future[bytes]]] = deque()
    with ThreadPoolExecutor(THREADS, thread_name_prefix="read-ahead") as pool:
        try:
            while left or reading:
                while left and _fits(left[0], [d for d, _ in reading], expected, held_bytes):
                    digest = left.popleft()
                    reading.append((digest, pool.submit(store.get, digest)))
                digest, done = reading.popleft()
                yield digest, done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # whoever pushes gave up: nobody wants the others


def _fits(digest: str, held: list[str], expected: Mapping[str, int], held_bytes: int) -> bool:
    if not held:
        return True
    total = sum(expected.get(d, 0) for d in [digest, *held])
    return len(held) <= THREADS and total <= held_bytes
