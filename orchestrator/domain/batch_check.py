"""Is a batch one that a phone may be given? Asked before it is touched; the runner's own parser asks again.

Numbers are those that the runner reads (workers/runner/src/job_case.c, job_pass.c).
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from orchestrator.domain.errors import WireError
from orchestrator.domain.job import Batch, CaseJob
from orchestrator.domain.limits import U32, Count, DeviceId, Digest, Limits, Line, Word, check, plain_store

DAY_MS = 86_400_000
MAX_CASES = 1024
MAX_PASSES = 1 << 16

Positive = Annotated[int, Field(ge=1, lt=1 << 32)]
Tolerance = Annotated[float, Field(ge=0)]


class _Buffer(Limits):
    name: Word
    role: Literal["in", "out", "inout", "scratch"]
    dtype: Literal["f32", "f16", "u32"]
    count: Annotated[int, Field(ge=1, le=1 << 36)]
    blob: Digest | None


class _Pass(Limits):
    shader: Digest
    grid: tuple[Positive, Positive, Positive]
    shared_bytes: U32
    buffers: Annotated[tuple[Word, ...], Field(min_length=1, max_length=64)]
    constants: Annotated[tuple[Annotated[int, Field(ge=-(1 << 31), lt=1 << 32)], ...], Field(max_length=64)]
    values: Annotated[tuple[U32, ...], Field(max_length=32)]
    subgroup: Annotated[int, Field(ge=0, le=1024)]


class _Check(Limits):
    buffer: Word
    reference: Digest
    atol: Tolerance
    rtol: Tolerance
    nmse: Tolerance
    keep: Literal["always", "failed"]
    shape: Annotated[tuple[Annotated[int, Field(ge=1, le=1 << 36)], ...], Field(max_length=8)]


class _Case(Limits):
    case_id: Word
    attempt: Annotated[int, Field(ge=1, lt=10_000_000)]
    label: Line
    api: Literal["gles", "vulkan"]
    code_hash: Word
    buffers: Annotated[list[_Buffer], Field(min_length=1, max_length=256)]
    passes: Annotated[list[_Pass], Field(min_length=1, max_length=MAX_PASSES)]
    checks: Annotated[list[_Check], Field(max_length=256)]
    deadline_ms: Annotated[int, Field(ge=1, le=DAY_MS)]
    warmup: Annotated[int, Field(ge=0, le=100_000)]
    warmup_ms: Annotated[int, Field(ge=0, le=60_000)]
    repeats: Annotated[int, Field(ge=0, le=10_000)]
    replays: Annotated[int, Field(ge=1, le=100_000)]
    idle_replays: Annotated[int, Field(ge=0, le=100_000)]
    idle_ms: Annotated[int, Field(ge=0, le=3_600_000)]
    kept: Annotated[tuple[Word, ...], Field(max_length=256)]
    estimate_ms: Count


class _Latency(Limits):
    code_hash: Word | Literal[""]
    gpu_ns: Count
    wall_ns: Count


class _Canary(Limits):
    job: _Case
    factor: Tolerance
    expected: _Latency


class _Batch(Limits):
    run_id: Word
    batch_id: Word
    device_id: DeviceId | Literal[""]
    blob_store: Annotated[Line, AfterValidator(plain_store)]
    cases: Annotated[list[_Case], Field(min_length=1, max_length=MAX_CASES)]
    canaries: Annotated[list[_Canary], Field(max_length=8)]
    soc: Line
    only_on: Annotated[list[DeviceId], Field(max_length=10_000)]
    planned_for: DeviceId | Literal[""]
    handed_back: Annotated[int, Field(ge=0, lt=10_000_000)]


class _Addressed(Limits):
    """Enough to answer."""

    case_id: Word
    attempt: Annotated[int, Field(ge=1, lt=10_000_000)]


class _Answerable(Limits):
    run_id: Word
    planned_for: DeviceId | Literal[""]
    cases: Annotated[list[_Addressed], Field(max_length=MAX_CASES)]


def check_batch(batch: Batch, where: str) -> None:
    """
    Raises:
        WireError: a phone must not be given this; says what it is about.
    """
    check(_Batch, batch, where)
    ids = [case.case_id for case in batch.cases]
    if len(set(ids)) < len(ids):
        raise WireError(f"{where}: a case is there twice")
    if problem := next(_problems([*batch.cases, *(c.job for c in batch.canaries)]), ""):
        raise WireError(f"{where}: {problem}")


def answerable(batch: Batch) -> bool:
    """Can its cases at least be told that they were refused?"""
    try:
        check(_Answerable, batch, "")
    except WireError:
        return False
    return True


def _problems(jobs: Iterable[CaseJob]) -> Iterator[str]:
    """What no single field tells."""
    for job in jobs:
        names = {b.name for b in job.buffers}
        if len(names) < len(job.buffers):
            yield f"case {job.case_id}: a buffer is there twice"
        used = {n for p in job.passes for n in p.buffers} | {c.buffer for c in job.checks} | {*job.kept}
        if unknown := sorted(used - names):
            yield f"case {job.case_id}: no buffer {unknown[0]}"
        for b in job.buffers:
            if (b.blob is not None) != (b.role in ("in", "inout")):
                with_it = "a" if b.blob else "no"
                yield f"case {job.case_id}: buffer {b.name} is {b.role} and has {with_it} blob"
