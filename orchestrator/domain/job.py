"""Work for one device: a batch of cases that needs nothing but the blob store.

The worker needs no checkout of the kernel's commit: shaders, inputs and references are blobs named
by their sha256.
"""

from dataclasses import dataclass, field
from typing import Literal

from orchestrator.domain.buffer import DType, Role
from orchestrator.domain.number import Number


@dataclass(frozen=True, slots=True)
class BufferJob:
    name: str
    role: Role
    dtype: DType
    count: int
    blob: str | None = None


@dataclass(frozen=True, slots=True)
class PassJob:
    shader: str
    """Blob of the shader: GLSL ES text, or SPIR-V for Vulkan."""
    grid: tuple[int, int, int]
    shared_bytes: int
    buffers: tuple[str, ...]
    constants: tuple[int, ...] = ()
    """Vulkan: values of specialisation constants 0, 1, …"""
    values: tuple[int, ...] = ()
    """Of this dispatch, in the order in which the shader declares them."""
    subgroup: int = 0
    """Vulkan: the subgroup size that the pass must run with; 0: any."""


@dataclass(frozen=True, slots=True)
class CheckJob:
    """Compare a buffer with a float64 reference."""

    buffer: str
    reference: str
    atol: Number
    rtol: Number
    nmse: Number
    keep: Literal["always", "failed"] = "failed"
    shape: tuple[int, ...] = ()
    """Of the output, to box what differs between replays; empty: one dimension."""


@dataclass(frozen=True, slots=True)
class CaseJob:
    case_id: str
    attempt: int
    label: str
    api: str
    code_hash: str
    buffers: list[BufferJob]
    passes: list[PassJob]
    checks: list[CheckJob]
    deadline_ms: int = 30_000
    warmup: int = 1
    warmup_ms: int = 0
    """Untimed sequences go on until so long after the first one; counts against the deadline."""
    repeats: int = 10
    replays: int = 1
    idle_replays: int = 0
    """Further replays, each after ``idle_ms`` of rest: a GPU that has clocked down may fail otherwise."""
    idle_ms: int = 0
    kept: tuple[str, ...] = ()
    """Unchecked outputs whose bytes the host wants."""
    estimate_ms: int = 0
    """Planned time on its device; sizes batches."""

    def blobs(self) -> set[str]:
        found = {p.shader for p in self.passes} | {c.reference for c in self.checks}
        return found | {b.blob for b in self.buffers if b.blob is not None}


@dataclass(frozen=True, slots=True)
class CanaryLatency:
    """What a canary took on a device, by the clock that timed it: one is several times the other."""

    code_hash: str = ""
    """Of the canary that took so long."""
    gpu_ns: int = 0
    """0: not known."""
    wall_ns: int = 0

    def of(self, clock: Literal["gpu", "wall"], code_hash: str) -> int:
        """In ns; 0 for a canary with other code."""
        if code_hash != self.code_hash:
            return 0
        return self.gpu_ns if clock == "gpu" else self.wall_ns


@dataclass(frozen=True, slots=True)
class CanaryJob:
    """A tiny case with a known answer and an expected latency."""

    job: CaseJob
    factor: Number
    """The latency may be so many times above or below the expected one."""
    expected: CanaryLatency = CanaryLatency()
    """From the device's last run with this driver; where it knows none, the worker's first canary sets it."""


@dataclass(frozen=True, slots=True)
class Batch:
    run_id: str
    batch_id: str
    device_id: str
    """Empty: any phone with ``soc`` may do it."""
    blob_store: str
    """fsspec URL of the blob store, as the worker reaches it."""
    cases: list[CaseJob] = field(default_factory=list[CaseJob])
    canaries: list[CanaryJob] = field(default_factory=list[CanaryJob])
    """At most one an API: runs before and after that API's cases, or their results do not count."""
    soc: str = ""
    """Name of the SoC whose queue the batch is in; empty for a batch of one device."""
    only_on: list[str] = field(default_factory=list[str])
    """Devices that may do a batch of a SoC's queue."""
    planned_for: str = ""
    """Target of the run that these cases belong to, where that is not the device that does them: a pool of
    phones, or a device that infrastructure kept from doing them. Empty: ``device_id``."""
    handed_back: int = 0
    """By workers whose phone could not take it at once."""
