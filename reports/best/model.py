"""What the page of best variants says, without how it looks. Texts are raw; pictures are finished markup."""

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from orchestrator.domain.best import Best, LeftOut, Measured, Pick, SocBest, Variant


@dataclass(frozen=True, slots=True)
class PickRow:
    """The variant to ship, of one choice of APIs."""

    pick: Pick
    name: str
    full: str
    """Kernel and every axis."""
    variant: Variant
    latency: str
    margin: str
    """How much longer the runner-up takes: ``+6.7 %``; ``–``: nothing else was left."""
    interval: str
    runner_up: str
    """Name of it."""
    won: str
    """``28 of 28``"""
    near: str
    worst: str
    """The phone on which most is lost to that phone's own best; empty: on none."""
    ties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VariantRow:
    variant: Variant
    name: str
    full: str
    latency: str
    slower: str
    """Than the fastest."""
    error: str
    max_abs: str
    shape: str
    """Mark of its precision in the chart."""


@dataclass(frozen=True, slots=True)
class LeftRow:
    left: LeftOut
    name: str


@dataclass(frozen=True, slots=True)
class WorkloadPart:
    anchor: str
    title: str
    """``attention seq=1024 heads=8``: the op, and what is not a matter of course."""
    parameters: str
    """All of them."""
    picks: tuple[PickRow, ...]
    chart: Markup
    legend: tuple[tuple[str, str], ...]
    """Shape and precision."""
    front: tuple[VariantRow, ...]
    """And what is shipped, which a tie may have taken from beside it."""
    rows: tuple[VariantRow, ...]
    left_out: tuple[LeftRow, ...]

    @property
    def best(self) -> PickRow | None:
        """Of all APIs."""
        return self.picks[0] if self.picks else None

    @property
    def beside(self) -> bool:
        """What is shipped is not on the front."""
        return not all(row.variant.front for row in self.front)


@dataclass(frozen=True, slots=True)
class BestPage:
    soc: SocBest
    file_name: str
    results_file: str
    """Page of this run's results; empty: there is none, as below."""
    changes_file: str
    said: str
    """``4 workloads, 3 with a clear winner, 1 tied; 2 phones, 14 nights.``"""
    parts: tuple[WorkloadPart, ...]
    phones: tuple[tuple[Measured, str, str], ...]
    """Each with its name and its drivers."""

    @property
    def sentence(self) -> str:
        return f"{self.soc.soc}: {self.said}"

    @property
    def notes(self) -> tuple[str, ...]:
        """On the SoC and on its drivers."""
        return (*self.soc.warnings, *(w for own in self.soc.driver_warnings.values() for w in own))

    @property
    def unsure(self) -> bool:
        """Something must be known before a pick is shipped."""
        return any(p.pick.warnings for part in self.parts for p in part.picks)


@dataclass(frozen=True, slots=True)
class BestPages:
    best: Best
    pages: tuple[BestPage, ...]
    names: Mapping[str, str]
    """Device id → name."""

    def of(self, soc: str) -> BestPage | None:
        return next((page for page in self.pages if page.soc.soc == soc), None)
