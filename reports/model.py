"""What a report says, without how it looks. Texts are raw: renderers escape them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.analysis.canaries import CanaryFacts
from orchestrator.analysis.clocks import ClockFacts
from orchestrator.analysis.compare import Change, Comparison
from orchestrator.analysis.hints import HintEffect
from orchestrator.analysis.numerics import ElementError, ToleranceUse
from orchestrator.analysis.outcome import ExpectationUse, JudgedTrial, Outcome, device_driver
from orchestrator.analysis.pairs import PairTable
from orchestrator.analysis.replays import Box, Replays
from orchestrator.analysis.roofline import Point
from orchestrator.analysis.shared import SharedProcessor
from orchestrator.analysis.stats import TimingStats
from orchestrator.analysis.subgroups import KernelBySize
from orchestrator.analysis.summary import Counts, Summary
from orchestrator.analysis.tiles import TileGrid
from orchestrator.analysis.worse import Worse
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.gate import FailOn
from orchestrator.domain.kernel import Tolerance
from orchestrator.domain.precision import Precision
from orchestrator.domain.results import Excluded, Missing, RunInfo
from orchestrator.domain.trial import Numerics
from orchestrator.domain.verdict import Verdict
from reports.best.model import BestPages
from reports.changes.model import Changes
from reports.changes.naming import Names
from reports.roofline import RoofChart


@dataclass(frozen=True, slots=True)
class OutputDetail:
    """One checked output of a trial that needs words."""

    numerics: Numerics
    tolerance: Tolerance | None
    use: ToleranceUse | None
    worst: ElementError | None
    first_bad: ElementError | None
    unwritten_at: tuple[int, ...] | None
    """Coordinates of the first unwritten element."""
    differs_at: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    """Coordinates of the first and last element that differ between executions."""
    replays: Replays
    box: Box | None
    """Around the elements that differ between executions."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A trial that a person should read about: everything but a plain pass."""

    anchor: str
    """Unique in the page, ``[a-z0-9-]+``."""
    device_id: str
    device_name: str
    case_id: str
    kernel: str
    label: str
    outcome: Outcome
    verdict: Verdict
    reason: str
    note: str
    outputs: tuple[OutputDetail, ...]
    driver: str
    code_hash: str
    attempt: int
    log: str
    log_file: str
    """File beside the page that holds the whole log; empty when the page shows all of it."""
    repro: str
    """Command line that runs exactly this case on this device again."""
    duration_ms: int
    uncounted: bool
    """Infra because the canary did not vouch for its batch."""
    probe: bool
    """It measures the device, not a variant."""


@dataclass(frozen=True, slots=True)
class VariantRow:
    anchor: str
    """The finding of this trial; empty for a plain pass."""
    case_id: str
    kernel: str
    values: tuple[str, ...]
    """In the order of the table's columns."""
    outcome: Outcome
    verdict: Verdict
    stats: TimingStats | None
    speedup: float | None
    gflops: float | None
    bytes_moved: int
    traffic_ratio: float | None
    max_error: float | None
    use: ToleranceUse | None
    compile_ns: int | None
    fastest: bool
    """The fastest correct row of its kernel, workload, inputs and clock."""
    roof: Point | None
    """Place under the device's measured ceilings; None for a wrong result or without probes."""
    clock: ClockFacts
    """Whether its median stands for one clock."""


@dataclass(frozen=True, slots=True)
class VariantTable:
    """All trials of one op and shape on one device, fastest first."""

    title: str
    common: tuple[tuple[str, str], ...]
    """Axes that have one value in every row."""
    columns: tuple[str, ...]
    """Axes that vary."""
    rows: tuple[VariantRow, ...]
    clock_notes: tuple[str, ...]
    """Why the wall clock was used, where it was."""
    clocks: tuple[str, ...]
    """Number of samples and clock, as the rows have them: ``10 samples, wall clock``."""
    hidden_hints: int
    """Rows left out because their hint changes nothing: the row that stays names both hints."""
    executions: str
    """Executions of each row whose bits were hashed: ``12`` or ``12 to 59``; empty without an output."""
    low_ns: float
    high_ns: float
    """Smallest and largest sample, the ends of the rows' range bars; 0 without times."""

    @property
    def mixed_clocks(self) -> bool:
        """Some rows are timed by the GPU's clock and some by the wall's."""
        return len({r.stats.clock for r in self.rows if r.stats is not None}) > 1

    @property
    def placed(self) -> bool:
        """Some row has a place under the roofline."""
        return any(r.roof is not None for r in self.rows)

    @property
    def roof_notes(self) -> tuple[str, ...]:
        """What a reader of the shares must know, each once."""
        return tuple(dict.fromkeys(r.roof.note for r in self.rows if r.roof is not None and r.roof.note))


@dataclass(frozen=True, slots=True)
class BestRow:
    """The fastest correct variant of a kernel per workload, api, precision and clock."""

    kernel: str
    api: str
    precision: str
    variant: str
    stats: TimingStats
    speedup: float | None
    gflops: float | None
    of: int
    """Correct variants that it was chosen from."""
    clock: ClockFacts
    """It moved in this one only where it moved in all of them."""


@dataclass(frozen=True, slots=True)
class BestGroup:
    """Kernels side by side on one workload."""

    workload: str
    rows: tuple[BestRow, ...]

    @property
    def variants(self) -> int:
        """Correct ones, of all kernels."""
        return sum(row.of for row in self.rows)


@dataclass(frozen=True, slots=True)
class PrunedGroup:
    """Points dropped for one reason."""

    reason: str
    count: int
    case_ids: tuple[str, ...]
    """The first of them."""


@dataclass(frozen=True, slots=True)
class PrecisionTable:
    """What one API of a device really delivers."""

    api: str
    rows: tuple[Precision, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unprobed:
    """A probe that has no answer on this device."""

    label: str
    why: str


@dataclass(frozen=True, slots=True)
class DeviceSection:
    anchor: str
    device: DeviceRecord
    sentence: str
    counts: Counts
    warning: str
    """What must be known before any of its numbers is read, e.g. that the phone is virtual."""
    findings: tuple[Finding, ...]
    """Failures first, then what was not obtained, unexpected passes, known failures, refusals."""
    missing: tuple[Missing, ...]
    best: tuple[BestGroup, ...]
    tables: tuple[VariantTable, ...]
    clock_notes: tuple[str, ...]
    """Trials whose clock moved, and throttled samples."""
    grids: tuple[TileGrid, ...]
    hints: tuple[HintEffect, ...]
    pruned: tuple[PrunedGroup, ...]
    other_apis: tuple[str, ...]
    """That the run's suite has points of and this device does not have."""
    changes: tuple[Change, ...]
    pairs: tuple[PairTable, ...]
    """The same points through the other API, on this device or on another driver of its processor."""
    rooflines: tuple[RoofChart, ...]
    """One an API through which variants ran."""
    precision: tuple[PrecisionTable, ...]
    precision_news: tuple[str, ...]
    """Sentences worth reading beside the verdict."""
    precision_brief: tuple[str, ...]
    """One line an API, for the terminal."""
    canaries: tuple[CanaryFacts, ...]
    unprobed: tuple[Unprobed, ...]
    shared: SharedProcessor | None
    """Other devices on its processor."""

    def of(self, *outcomes: Outcome) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.outcome in outcomes)


@dataclass(frozen=True, slots=True)
class SocPage:
    soc: str
    file_name: str
    sentence: str
    counts: Counts
    bad: bool
    virtual: bool
    """Every device of this page is virtual."""
    devices: tuple[DeviceSection, ...]


@dataclass(frozen=True, slots=True)
class ReportModel:
    run: RunInfo
    summary: Summary
    socs: tuple[SocPage, ...]
    expectations: tuple[ExpectationUse, ...]
    excluded: tuple[Excluded, ...]
    missing: tuple[Missing, ...]
    """Of all devices, also of those never seen."""
    comparison: Comparison | None
    max_slowdown: float | None
    trials: tuple[JudgedTrial, ...]
    labels: Mapping[str, str]
    """Case id → its short name in this report, of both runs."""
    common: Mapping[str, str]
    """What every case of this run has in common; left out of the short names."""
    case_names: Names
    """Of the cases of two compared runs, by what varies within each kernel; empty without a second run."""
    logs: dict[str, str]
    """File name (below the report's folder) → whole log."""
    pairs: tuple[PairTable, ...]
    shared: tuple[SharedProcessor, ...]
    """Devices that execute on one processor."""
    by_subgroup: tuple[KernelBySize, ...]
    """Kernels that failed, where devices run them with different subgroup sizes."""
    shipped: BestPages | None = None
    """Which variants to ship; None: no history was asked."""
    changes: Changes | None = None
    """The night against its history; None: no history was asked, and two runs are compared instead."""
    fail_on: FailOn = "wrong"
    """What makes the exit code 1."""
    worse: Worse = field(default_factory=Worse)
    """Of its findings, what got worse and nobody has dealt with."""
    told: frozenset[str] = frozenset()
    """Ids of findings that people are told of, improvements among them."""

    @property
    def slow(self) -> tuple[Change, ...]:
        """Changes above the caller's bound."""
        if self.comparison is None or self.max_slowdown is None:
            return ()
        return self.comparison.slowdowns(self.max_slowdown)

    @property
    def unmatched(self) -> tuple[ExpectationUse, ...]:
        """Known failures, of drivers that took part, that a whole suite never met. A part tells nothing."""
        if not self.run.whole_suite or self.run.wanted:
            return ()
        devices = [d.device for soc in self.socs for d in soc.devices]
        there = {(d.soc.name, device_driver(d, p.api)) for d in devices for p in d.profiles}
        return tuple(
            u
            for u in self.expectations
            if not u.expired and not u.matched and any(u.expectation.covers_device(*who) for who in there)
        )

    def best(self, limit: int) -> tuple[tuple[DeviceSection, BestGroup], ...]:
        """The workloads with most variants, taken in turn from every device, then by device."""
        devices = [d for soc in self.socs for d in soc.devices]
        in_turn = sorted((rank, i) for i, d in enumerate(devices) for rank in range(len(d.best)))
        kept = sorted((i, rank) for rank, i in in_turn[:limit])
        return tuple((devices[i], devices[i].best[rank]) for i, rank in kept)

    @property
    def best_total(self) -> int:
        """Workloads that :meth:`best` chooses from."""
        return sum(len(d.best) for soc in self.socs for d in soc.devices)

    def findings(self, *outcomes: Outcome) -> tuple[Finding, ...]:
        """Of all devices; what a canary took away comes first, because one fault explains many."""
        found = [f for soc in self.socs for d in soc.devices for f in d.of(*outcomes)]
        return tuple(sorted(found, key=lambda f: not f.uncounted))

    @property
    def clock_notes(self) -> tuple[tuple[DeviceSection, str], ...]:
        return tuple((d, text) for soc in self.socs for d in soc.devices for text in d.clock_notes)

    @property
    def precision_news(self) -> tuple[tuple[DeviceSection, str], ...]:
        return tuple((d, text) for soc in self.socs for d in soc.devices for text in d.precision_news)
