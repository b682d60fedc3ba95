"""A table that an app ships: which variant to take for a workload on a SoC (tuning.json, format 1).

It names no phone: SoCs, drivers and counts are all that leaves the farm. Every number was measured.
"""

from dataclasses import dataclass, field
from typing import Literal

from orchestrator.domain.best import Scope
from orchestrator.domain.case import AxisValue, axis_text

TUNING_FORMAT = 1
Match = Literal["soc", "vendor", "all"]
"""What an entry is looked up by, in the order in which an app looks: its SoC, its SoC's vendor, nothing."""
MATCHES: tuple[Match, ...] = ("soc", "vendor", "all")


@dataclass(frozen=True, slots=True)
class TunedVariant:
    case_id: str
    kernel: str
    axes: dict[str, AxisValue]
    code_hash: str
    """Of the shader and its numeric contract that were measured: another one has other times."""
    nmse: float | None
    """Largest of all phones and nights; null: not known."""
    max_abs: float | None


@dataclass(frozen=True, slots=True)
class TunedMargin:
    """Log ratio of the runner-up's latency to the variant's: 0.05 is 5 % slower."""

    to: str
    """Case id of the runner-up."""
    log_ratio: float
    low: float | None
    """95 % interval; null: nothing is known of its scatter."""
    high: float | None


@dataclass(frozen=True, slots=True)
class Entry:
    match: Match
    soc: str
    """Empty: the entry is a fallback for SoCs that were not measured."""
    vendor: str
    """Of the SoC, or of the group; empty: of all."""
    api: Scope
    """That the app wants: ``any`` chooses among all of them."""
    op: str
    workload: dict[str, AxisValue]
    variant: TunedVariant
    drivers: list[str] = field(default_factory=list[str])
    """Of the phones that were measured; of a SoC's entry."""
    latency_ns: int | None = None
    """Of a SoC's entry: of the phone in the middle."""
    margin: TunedMargin | None = None
    """Of a SoC's entry; null: nothing else was left to choose from."""
    tied: list[str] = field(default_factory=list[str])
    """Case ids of variants that cannot be told from it."""
    phones: int = 0
    nights: int = 0
    """Different ones."""
    near_share: float | None = None
    """Of the nights of phones: those in which nothing was faster by more than 2 %."""
    loss: float = 0.0
    """Of a fallback: largest log ratio to the fastest variant on any SoC of its group; 0 of a SoC's entry."""
    socs: list[str] = field(default_factory=list[str])
    """Of a fallback: its group, on all of which it passed."""
    warnings: list[str] = field(default_factory=list[str])

    @property
    def workload_key(self) -> str:
        """``head_dim=64 heads=8 …``, by name: what an app looks for."""
        return " ".join(f"{name}={axis_text(self.workload[name])}" for name in sorted(self.workload))


@dataclass(frozen=True, slots=True)
class TunedSoc:
    soc: str
    vendor: str
    drivers: list[str]
    phones: int
    nights: int
    virtual: bool
    """Its phones are made up: the entries are for trying things out, not for shipping."""


@dataclass(frozen=True, slots=True)
class Tuning:
    tilefarm: str
    """Version that made it."""
    suite: str
    run_id: str
    """The newest run looked at."""
    runs: list[str]
    """All, oldest first, one a night."""
    nights: list[str]
    """Their dates, UTC."""
    precisions: list[str]
    """That were chosen from; empty: all."""
    max_nmse: float | None
    command: str
    """That makes this table again from the same history."""
    socs: list[TunedSoc] = field(default_factory=list[TunedSoc])
    entries: list[Entry] = field(default_factory=list[Entry])
    format: int = TUNING_FORMAT
