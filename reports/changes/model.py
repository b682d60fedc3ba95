"""What the pages of changes say, without how they look. Texts are raw; pictures are finished markup."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from orchestrator.domain.finding import (
    DeviceNight,
    Finding,
    Findings,
    Group,
    InTurns,
    PhoneChange,
    SeriesRow,
)
from reports.changes.naming import Shared


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
    """Kernel and what varies."""
    full: str
    """Kernel and every axis."""
    word: str
    """What happened: ``regressed``, ``drifting``, ``hash_changed``."""
    change: str
    """``5.1 % slower``; of numerics the ratio of errors, or empty."""
    page: str
    anchor: str
    """Of its detail; empty: beyond the number of details."""


@dataclass(frozen=True, slots=True)
class Part:
    """A card's findings on one of several SoCs."""

    soc: str
    page: str
    change: str
    count: int


@dataclass(frozen=True, slots=True)
class Spark:
    """A history in small, with the nights at its ends."""

    picture: Markup
    first: str
    last: str
    what: str
    """Its axis: ``latency``, ``NMSE``."""


@dataclass(frozen=True, slots=True)
class Card:
    """Findings with one cause."""

    group: Group
    word: str
    """What happened, as of an entry."""
    title: str
    """What the findings share and where: ``sgemm on all 5 SoCs``."""
    share: str
    """``15 of 15 variants``, ``1 finding``; empty where ``title`` says it."""
    sentence: str
    """All of that in one, for a page's head and where there are no cards."""
    change: str
    """Median over its findings; empty where none has a number."""
    entries: tuple[Entry, ...]
    """The largest effect first."""
    parts: tuple[Part, ...]
    """SoC by SoC; empty: one only. On the page of a SoC: the other ones."""
    spark: Spark | None
    """Mean history of its cases."""
    cause: str
    """``driver or OS changed: driver 744``"""
    since: str
    """``22 Nov``; empty: not known."""
    since_full: str
    """With year and run."""
    confirmed: str
    """What a second measurement said of how many; empty: none was asked for."""
    settled: bool = False
    """Each of them is dealt with."""
    whole: bool = False
    """All variants of a SoC or of a phone together: no row of the table shows it."""
    anchor: str = ""
    """The same on every page that shows it."""


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
class Turns:
    """A finding's duel on one phone."""

    name: str
    duel: InTurns
    p: str


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
    sentence: str
    """The finding's, nights as dates."""
    facts: tuple[tuple[str, str], ...]
    phones: tuple[Phone, ...]
    duels: tuple[Turns, ...]
    """Both codes in turns, where that was asked for."""
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
    items: tuple[str, ...]
    """Sentences about its health, nights as dates."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """Of the method, as people read it."""

    name: str
    value: str
    why: str


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
    full: str
    change: str
    latency: str
    detectable: str
    flags: tuple[str, ...]
    """Words of numerics; ``drifting``."""
    why: str
    """For what the verdict does not say, empty where it does."""
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
    not_judged: tuple[str, ...]
    """Sentences: how many variants have no verdict, and why."""
    not_measured: tuple[str, ...]
    """Sentences of the night, without those about phones of other SoCs."""
    cards: tuple[Card, ...]
    unconfirmed: tuple[Entry, ...]
    """Found first and not found again: no alarm."""
    shift: Spark | None
    """What all variants of its phones did together, mean over the phones."""
    shift_last: str
    """``+1.2 %``"""
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
        """Something is slower or has other numerics: a variant by itself, or what only a card tells, such as
        the whole SoC, and nobody has dealt with that."""
        counted = any(t.number for t in self.tallies if t.name in ("regressed", "numerics"))
        return counted or any(c.group.what != "improved" and not c.settled for c in self.cards)

    def tally(self, name: str) -> int:
        return next((t.number for t in self.tallies if t.name == name), 0)


@dataclass(frozen=True, slots=True)
class Changes:
    """A night against its history."""

    findings: Findings
    sentence: str
    """The verdict, nights as dates."""
    not_measured: tuple[str, ...]
    """Sentences: missed nights, missing phones, too few nights."""
    tallies: tuple[Tally, ...]
    socs: tuple[SocChanges, ...]
    cards: tuple[Card, ...]
    """Of all SoCs."""
    names: Mapping[str, str]
    """Device id → name."""
    labels: Mapping[str, str]
    """Case id → kernel and what varies."""
    shared: tuple[Shared, ...]
    """What names leave out, kernel by kernel."""
    parameters: tuple[Parameter, ...]

    @property
    def moved(self) -> bool:
        """Some SoC has."""
        return any(soc.moved for soc in self.socs)

    @property
    def judged(self) -> bool:
        """The speed of some variant; until a suite has a week of nights, two runs are compared beside it."""
        return any(r.verdict in ("same", "regressed", "improved") for r in self.findings.series)

    @property
    def unwell(self) -> Sequence[PhoneNights]:
        return [p for soc in self.socs for p in soc.phones if p.items]

    @property
    def entries(self) -> Sequence[Entry]:
        """In the order of the groups."""
        return [e for card in self.cards for e in card.entries]
