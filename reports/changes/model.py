"""What the pages of changes say, without how they look. Texts are raw; pictures are finished markup."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from orchestrator.domain.finding import DeviceNight, Finding, Findings, Group, PhoneChange, SeriesRow


@dataclass(frozen=True, slots=True)
class Tally:
    """One number of a SoC or of the night."""

    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A finding in one line."""

    finding: Finding
    label: str
    change: str
    """``5.1 % slower``; of numerics the ratio of errors, or empty."""
    page: str
    anchor: str
    """Of its detail; empty: beyond the number of details."""


@dataclass(frozen=True, slots=True)
class Card:
    """Findings with one cause."""

    group: Group
    change: str
    """Median over its findings."""
    entries: tuple[Entry, ...]
    """The largest effect first."""
    spark: Markup
    """Mean history of its cases; empty without any."""

    @property
    def settled(self) -> bool:
        """A person decided about each of them."""
        return all(e.finding.triage is not None and e.finding.triage.state != "new" for e in self.entries)


@dataclass(frozen=True, slots=True)
class Chart:
    caption: str
    picture: Markup
    note: str = ""


@dataclass(frozen=True, slots=True)
class Phone:
    name: str
    change: PhoneChange


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numerics of one phone before and after."""

    phone: str
    rows: tuple[tuple[str, str, str], ...]
    """Name, before, after."""


@dataclass(frozen=True, slots=True)
class Detail:
    """Everything about one finding."""

    entry: Entry
    facts: tuple[tuple[str, str], ...]
    phones: tuple[Phone, ...]
    history: Chart | None
    lines: tuple[str, ...]
    """Phones of that chart."""
    events: tuple[tuple[str, str, str], ...]
    """Letter, night, what happened."""
    strips: tuple[tuple[str, tuple[Chart, ...]], ...]
    """Samples before and after: caption, strips."""
    tiles: tuple[Chart, ...]
    roof: Chart | None
    errors: Chart | None
    numbers: Numbers | None
    repro: str
    duel: str
    """Empty: the change is not of code, or nothing to compare with."""


@dataclass(frozen=True, slots=True)
class PhoneNights:
    """One phone's health over the nights."""

    device: DeviceNight
    name: str
    picture: Markup
    environments: tuple[tuple[str, str], ...]
    """Night and environment, where it changed."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How many series would have shown which change."""

    label: str
    count: int
    share: float


@dataclass(frozen=True, slots=True)
class TableRow:
    """A case on a SoC as the table shows it."""

    series: SeriesRow
    label: str
    change: str
    latency: str
    detectable: str
    anchor: str
    spark: Markup


@dataclass(frozen=True, slots=True)
class SocChanges:
    soc: str
    file_name: str
    table_file: str
    """All rows as CSV."""
    results_file: str
    """Page of this run's results; empty: no phone of the SoC took part."""
    sentence: str
    tallies: tuple[Tally, ...]
    cards: tuple[Card, ...]
    details: tuple[Detail, ...]
    left_out: int
    """Findings beyond the number of details."""
    rows: tuple[SeriesRow, ...]
    """All, by importance."""
    first_rows: tuple[TableRow, ...]
    data: str
    """All rows as JSON for the page's script; safe inside a script element."""
    csv: str
    """All rows for a spreadsheet."""
    kernels: tuple[str, ...]
    phones: tuple[PhoneNights, ...]
    sensitivity: tuple[Sensitivity, ...]

    @property
    def moved(self) -> bool:
        return any(t.number for t in self.tallies if t.name in ("regressed", "numerics"))

    def tally(self, name: str) -> int:
        return next((t.number for t in self.tallies if t.name == name), 0)


@dataclass(frozen=True, slots=True)
class Changes:
    """A night against its history."""

    findings: Findings
    tallies: tuple[Tally, ...]
    socs: tuple[SocChanges, ...]
    cards: tuple[Card, ...]
    """Of all SoCs."""
    names: Mapping[str, str]
    """Device id → name."""
    labels: Mapping[str, str]

    @property
    def moved(self) -> bool:
        """Something is slower or has other numerics, and is not settled."""
        return any(soc.moved for soc in self.socs)

    @property
    def entries(self) -> Sequence[Entry]:
        """In the order of the groups."""
        return [e for card in self.cards for e in card.entries]
