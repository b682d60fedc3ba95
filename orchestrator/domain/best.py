"""Which variant to ship, per SoC and workload, as the analysis says it (best.json, format 1).

Times of different phones are never pooled: what ranks variants are log ratios within one phone's night.
A ratio of 1.05 takes 5 % longer.
"""

from dataclasses import dataclass, field
from typing import Literal

from orchestrator.domain.case import AxisValue
from orchestrator.domain.number import Number

BEST_FORMAT = 1
Scope = Literal["any", "gles", "vulkan"]
"""APIs that a pick chooses from."""
SCOPES: tuple[Scope, ...] = ("any", "gles", "vulkan")


@dataclass(frozen=True, slots=True)
class Margin:
    """How much longer another variant takes than the pick."""

    case_id: str
    log_ratio: Number
    """Above 0: the other one is slower. Of the phone in the middle."""
    low: Number
    """95 % interval of ``log_ratio``; NaN: nothing is known of its scatter."""
    high: Number
    worst: Number
    """On the phone where it is smallest."""
    pairs: int
    """Nights of phones in which both were measured."""


@dataclass(frozen=True, slots=True)
class PhoneShare:
    """The pick on one phone."""

    device_id: str
    nights: int
    won: int
    """Nights in which nothing was faster."""
    near: int
    """Nights in which nothing was faster by more than 2 %; those won are among them."""
    loss: Number
    """Log ratio over all its nights to the variant that is fastest on this phone; 0: it is the pick."""


@dataclass(frozen=True, slots=True)
class Pick:
    """What to ship for one workload on one SoC."""

    api: Scope
    case_id: str
    fastest: str
    """Case id of the smallest latency; another one than ``case_id`` where the two are tied."""
    runner_up: Margin | None
    """The fastest of all others; None: nothing else is left to choose from."""
    tied: list[str] = field(default_factory=list[str])
    """Case ids that cannot be told from the fastest, itself included, the pick left out; empty: no tie."""
    why: str = ""
    """Of a tie: why this one of them."""
    phones: list[PhoneShare] = field(default_factory=list[PhoneShare])
    nights: int = 0
    """Different nights in which it was measured."""
    warnings: list[str] = field(default_factory=list[str])

    @property
    def pairs(self) -> int:
        """Nights of phones."""
        return sum(p.nights for p in self.phones)

    @property
    def won(self) -> int:
        return sum(p.won for p in self.phones)

    @property
    def near(self) -> int:
        return sum(p.near for p in self.phones)

    @property
    def worst_phone(self) -> PhoneShare | None:
        return max(self.phones, key=lambda p: (p.loss, p.device_id), default=None)


@dataclass(frozen=True, slots=True)
class Variant:
    """One that may be chosen: it passed wherever its code ran."""

    case_id: str
    kernel: str
    axes: dict[str, AxisValue]
    code_hash: str
    latency_ns: Number
    """On the phone in the middle."""
    log_ratio: Number
    """To the fastest of the workload, of all APIs; what variants are ranked by."""
    nmse: Number
    """Largest of all phones and nights, as ``max_abs``; NaN: no error is known."""
    max_abs: Number
    phones: int
    nights: int
    """Different ones."""
    clock: Literal["gpu", "wall", "both"]
    front: bool = False
    """No other variant is at least as fast and has a smaller NMSE, or as small a one and is faster."""

    @property
    def api(self) -> str:
        return str(self.axes.get("api", ""))

    @property
    def precision(self) -> str:
        return str(self.axes.get("precision", ""))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A variant that may not be chosen, or cannot be compared."""

    case_id: str
    kernel: str
    axes: dict[str, AxisValue]
    why: str


@dataclass(frozen=True, slots=True)
class WorkloadBest:
    op: str
    workload: dict[str, AxisValue]
    picks: list[Pick] = field(default_factory=list[Pick])
    """One a scope that has variants, ``any`` first."""
    variants: list[Variant] = field(default_factory=list[Variant])
    """The fastest first."""
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])

    def variant(self, case_id: str) -> Variant:
        """
        Raises:
            KeyError: no variant to choose from has this id.
        """
        for variant in self.variants:
            if variant.case_id == case_id:
                return variant
        raise KeyError(case_id)


@dataclass(frozen=True, slots=True)
class Measured:
    """A phone whose nights count."""

    device_id: str
    drivers: dict[str, str]
    """API → driver of its newest night: nights with another one do not count."""
    runs: list[str]
    """That count, oldest first: something ran with the driver of its API's newest night."""
    driver_since: dict[str, str]
    """API → first run with that driver, where it changed within the nights looked at."""
    virtual: bool = False


@dataclass(frozen=True, slots=True)
class SocBest:
    soc: str
    vendor: str
    phones: list[Measured] = field(default_factory=list[Measured])
    workloads: list[WorkloadBest] = field(default_factory=list[WorkloadBest])
    warnings: list[str] = field(default_factory=list[str])
    """Of all its variants."""
    driver_warnings: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """API → of the variants of that API."""

    @property
    def virtual(self) -> bool:
        """Some of its phones are made up: times say nothing about the SoC."""
        return any(p.virtual for p in self.phones)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was to be chosen from."""

    precisions: list[str] = field(default_factory=list[str])
    """Empty: all."""
    max_nmse: Number | None = None


@dataclass(frozen=True, slots=True)
class Best:
    run_id: str
    """The newest one looked at."""
    suite: str
    runs: list[str]
    """Looked at, oldest first, one a night."""
    nights: list[str]
    """Their dates, UTC."""
    tilefarm: str
    """Version that made this."""
    chosen: Chosen = field(default_factory=Chosen)
    socs: list[SocBest] = field(default_factory=list[SocBest])
    method: dict[str, Number] = field(default_factory=dict[str, Number])
    format: int = BEST_FORMAT
