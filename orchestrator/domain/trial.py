"""One case on one device in one run: what came back."""

import re
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.domain.number import Number
from orchestrator.domain.verdict import Verdict

GpuTimer = Literal["trusted", "absent", "disagrees", "disjoint"]


@dataclass(frozen=True, slots=True)
class Element:
    index: int
    got: Number
    ref: Number


@dataclass(frozen=True, slots=True)
class Difference:
    """Elements that differ between any two replays."""

    count: int
    first: int
    last: int
    box: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Smallest and largest coordinate in each dimension of the output's shape; empty without a shape."""


@dataclass(frozen=True, slots=True)
class Numerics:
    """Comparison of one output buffer with its reference, made on the device in double."""

    buffer: str
    dtype: str
    count: int
    hash: str
    hashes: dict[str, int]
    """Output hash → number of replays and timed runs that gave it."""
    guard: Literal["ok", "damaged"]
    unwritten: int
    nan: int
    inf: int
    nonfinite_mismatch: int
    failing: int
    max_abs: Number
    mean_abs: Number
    p99_abs: Number
    max_rel: Number
    mean_rel: Number
    p99_rel: Number
    ulp_max: Number
    ulp_p50: Number
    ulp_p99: Number
    nmse: Number
    cosine: Number
    ref_absmax: Number
    unwritten_first: int | None = None
    differs: Difference | None = None
    idle_hashes: dict[str, int] = field(default_factory=dict[str, int])
    """Of ``hashes``, the replays that came after a rest: rates are told per power state, never pooled."""
    first_bad: Element | None = None
    worst: Element | None = None
    keep_error: str = ""
    """Why the device could not keep the tensor that the job asked for."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Raw times in ns, one entry a timed dispatch sequence; nothing is averaged here."""

    compile_ns: list[int]
    first_ns: int
    wall_ns: list[int]
    gpu_ns: list[int]
    gpu_timer: GpuTimer
    slope_ns: int = 0
    slope_n: int = 0
    reused: int = 0
    """Shaders that an earlier case of the same process had compiled already; their compile_ns is
    that first compile's."""

    @property
    def samples_ns(self) -> list[int]:
        """GPU times where the timer is trusted, else wall times."""
        return self.gpu_ns if self.gpu_timer == "trusted" else self.wall_ns

    @property
    def clock(self) -> Literal["gpu", "wall"]:
        return "gpu" if self.gpu_timer == "trusted" else "wall"


@dataclass(frozen=True, slots=True)
class Sensors:
    """Before each timed sequence and after the last; empty where the device exposes nothing."""

    gpu_hz: list[int] = field(default_factory=list[int])
    temp_mc: list[int] = field(default_factory=list[int])
    """Of the GPU or the SoC."""
    throttled: bool | None = None
    battery_mc: int | None = None
    """The warmer of before and after the batch: a phone's case is about as warm. None: not told."""


@dataclass(frozen=True, slots=True)
class Canary:
    """Median latencies of the canary around the batch of a trial, in ns."""

    before_ns: int
    after_ns: int
    expected_ns: int
    factor: Number
    clock: Literal["", "gpu", "wall"] = ""
    """Which one timed them; empty in results from before this was kept."""
    code_hash: str = ""
    """Of the canary; empty likewise."""


@dataclass(frozen=True, slots=True)
class Trial:
    run_id: str
    device_id: str
    case_id: str
    attempt: int
    verdict: Verdict
    reason: str
    """Empty for a pass; else what a person must know first, numbers included."""
    code_hash: str
    started_at: str
    """UTC, ISO 8601."""
    duration_ms: int
    driver: str = ""
    """Renderer and version that executed it."""
    log: str = ""
    """Driver's log, printable ASCII with escapes."""
    timing: Timing | None = None
    sensors: Sensors | None = None
    outputs: list[Numerics] = field(default_factory=list[Numerics])
    canary: Canary | None = None
    """None: no canary was asked for, or the batch never got that far."""
    recheck: Literal["", "agreed", "disagreed"] = ""
    """The host pulled the tensor and compared it again."""
    tensors: dict[str, str] = field(default_factory=dict[str, str])
    """Output buffer → blob of the pulled tensor (failures, samples, and what a probe keeps)."""
    planned_for: str = ""
    """Target that the case was planned for, where that is not its device: a pool of phones that stand in for
    each other, or a phone that infrastructure kept from doing it. Empty: the device."""

    @property
    def key(self) -> str:
        return trial_key(self.target, self.case_id, self.attempt)

    @property
    def target(self) -> str:
        return self.planned_for or self.device_id


def trial_key(target: str, case_id: str, attempt: int) -> str:
    """By which a result is asked for, inserted once a run, and struck off: one spelling for all three."""
    return f"{target}/{case_id}/{attempt}"


_KEY = re.compile(r"([A-Za-z0-9._-]+)/([A-Za-z0-9._-]+)/([0-9]{1,6})")


def unreadable_trial(run_id: str, device_id: str, key: str, reason: str) -> Trial:
    """In the place of a result that came and cannot be read: nobody knows what it said.

    Raises:
        ValueError: ``key`` is no trial's key.
    """
    if (words := _KEY.fullmatch(key)) is None:
        raise ValueError(f"{key!r} is no trial's key")
    target, case_id, attempt = words.groups()
    return Trial(
        run_id=run_id,
        device_id=device_id or target,
        case_id=case_id,
        attempt=int(attempt),
        verdict=Verdict.INFRA,
        reason=reason,
        code_hash="",
        started_at="",
        duration_ms=0,
        planned_for=target if device_id and device_id != target else "",
    )
