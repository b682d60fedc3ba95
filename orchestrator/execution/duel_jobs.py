"""From two codes to the entries of one job that measures them in turns.

A program is compiled once a process, so that an entry costs its buffers and its dispatches. Entries check no
output: both codes were judged in their own runs, and comparing outputs between two samples would let the
clock fall.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.domain.confirmation import Wanted
from orchestrator.domain.errors import InfraError, TilefarmError, UsageError
from orchestrator.domain.job import CanaryJob, CanaryLatency, CaseJob
from orchestrator.execution.manifest import Manifest
from orchestrator.execution.run_folder import RunFolder, find_run
from orchestrator.storage.blobs import BlobStore

ENTRY_WARMUP_MS = 100
"""Before each sample but the first of each code, where the job warms up at all: between two entries the host
only fills buffers, and the clock has little time to fall (decision 0017)."""
FOUR = "ABBA"


class NotThere(InfraError):
    """A code that cannot be measured any more; says why."""


@dataclass(frozen=True, slots=True)
class Codes:
    """Both codes of a comparison, as jobs of one device; all their blobs are in ``blob_store``."""

    before: CaseJob
    after: CaseJob
    blob_store: str
    canaries: list[CanaryJob] = field(default_factory=list[CanaryJob])


@dataclass(slots=True)
class Manifests:
    """Of the runs below an OUT; each is read once."""

    out: Path
    _known: dict[str, Manifest] = field(default_factory=dict[str, Manifest])

    def of(self, run: str) -> Manifest:
        """
        Args:
            run: id, or a run's folder.

        Raises:
            NotThere: its folder is gone, or cannot be read.
        """
        if run not in self._known:
            try:
                self._known[run] = RunFolder(find_run(self.out, run)).manifest()
            except TilefarmError as e:
                raise NotThere(f"the jobs of run {run} are gone: {e}") from e
        return self._known[run]


def job_of(manifest: Manifest, device_id: str, case_id: str, code_hash: str = "") -> CaseJob:
    """A case as its run gave it to a device: its own, or as another phone had it.

    Raises:
        NotThere: the run has no such job, or its code is another one.
    """
    run_id = manifest.planned.run.run_id
    own = sorted(manifest.wanted, key=lambda target: (target != device_id, target))
    job = next((j for t in own for j in manifest.wanted[t] if j.case_id == case_id), None)
    if job is None:
        raise NotThere(f"run {run_id} has no job of case {case_id}")
    if code_hash and job.code_hash != code_hash:
        raise NotThere(
            f"run {run_id} has code {job.code_hash[:12]} of case {case_id}, not {code_hash[:12]} as judged"
        )
    return job


def canaries_of(manifest: Manifest, device_id: str) -> list[CanaryJob]:
    """That vouch for a batch of this device."""
    if device_id in manifest.canaries:
        return manifest.canaries[device_id]
    for pool in manifest.pools.values():
        if device_id in pool.devices:  # what another phone's canary took says nothing
            return [replace(c, expected=CanaryLatency()) for c in pool.canaries]
    return []


def codes_of(wanted: Wanted, run: str, manifests: Manifests) -> Codes:
    """What a question asks to be measured in turns.

    Args:
        run: whose code is the candidate's.

    Raises:
        NotThere: a job or a blob is gone.
    """
    after, before = manifests.of(run), manifests.of(wanted.baseline_run)
    return brought_together(
        job_of(before, wanted.device_id, wanted.case_id, wanted.code_before),
        before.blob_store,
        job_of(after, wanted.device_id, wanted.case_id, wanted.code_after),
        after.blob_store,
        canaries_of(after, wanted.device_id),
    )


def brought_together(
    before: CaseJob, old_store: str, after: CaseJob, store: str, canaries: Sequence[CanaryJob]
) -> Codes:
    """Both jobs with one blob store; what only the older one has is copied.

    Raises:
        NotThere: a blob is gone.
        UsageError: they are of two APIs: no one process could measure both.
    """
    if before.api != after.api:
        raise UsageError(f"{before.label} runs on {before.api} and {after.label} on {after.api}")
    new, old = BlobStore(store), BlobStore(old_store)
    shaders = {p.shader for job in (before, after) for p in job.passes}
    for digest in sorted(entry_blobs(before) | entry_blobs(after)):
        if new.has(digest):
            continue
        what = "shader" if digest in shaders else "input"
        if store == old_store or not old.has(digest):
            raise NotThere(f"its {what} {digest[:12]} is no longer in {old.url}")
        new.put(old.get(digest))
    return Codes(before, after, store, [c for c in canaries if c.job.api == after.api])


def entry_blobs(job: CaseJob) -> set[str]:
    return {p.shader for p in job.passes} | {b.blob for b in job.buffers if b.blob is not None}


def entries(codes: Codes, first: int, end: int, repeats: int = 1) -> list[CaseJob]:
    """Samples ``first`` to ``end`` of A B B A A B B A …, each an entry of one job.

    Ids tell place and code; no case of a run has such a one.

    Args:
        repeats: times that one sample is the median of.
    """
    sides: Mapping[str, CaseJob] = {"A": codes.before, "B": codes.after}
    met: set[str] = set()
    found: list[CaseJob] = []
    for place in range(first, end):
        side = FOUR[place % 4]
        job = sides[side]
        warmup_ms = job.warmup_ms if side not in met else min(job.warmup_ms, ENTRY_WARMUP_MS)
        met.add(side)
        found.append(
            replace(
                job,
                case_id=entry_id(job.case_id, place),
                attempt=1,
                checks=[],
                kept=(),
                warmup=1 if found else max(job.warmup, 1),
                warmup_ms=warmup_ms,
                repeats=repeats,
                replays=1,
                idle_replays=0,
                idle_ms=0,
            )
        )
    return found


def entry_id(case_id: str, place: int) -> str:
    return f"{case_id}-{place:02d}{FOUR[place % 4]}"
