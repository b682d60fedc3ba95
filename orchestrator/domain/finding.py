"""What changed in a night, as the analysis says it: for reports, CI and triage (findings.json, format 1).

A latency changes by a log ratio: ``effect`` 0.05 is 5 % slower, -0.05 5 % faster, and both are as far from 0.
"""

from dataclasses import dataclass, field
from typing import Literal

from orchestrator.domain.number import Number

FINDINGS_FORMAT = 1
EVERYTHING = "all variants"
"""In the place of a case id: the phone or the SoC as a whole, whose shift is taken off each of its cases."""
Kind = Literal["speed", "numerics"]
SpeedWord = Literal["regressed", "improved", "same", "inconclusive", "new", "missing"]
NumericsWord = Literal["hash_changed", "nmse_doubled", "limit_crossed", "nondeterministic", "improved"]
Cause = Literal["code", "driver", "device", "environment"]
"""Another code hash; another driver or OS build; this phone alone; none of these."""
Confirmed = Literal["yes", "no", "unknown", "not asked"]
"""By a second measurement in the night that found it (duel, or the same code again)."""
NotAsked = Literal["", "known", "budget", "numerics", "whole", "drift"]
"""An earlier night said it and had no answer either; beyond the night's budget; and what is never measured
twice: numerics, a phone or SoC as a whole, a drift. Empty: it was asked, or the run had no second look."""
TriageState = Literal["new", "acknowledged", "accepted", "noise", "fixed"]


@dataclass(frozen=True, slots=True)
class Triage:
    """What a person decided about a finding; kept in files under version control."""

    state: TriageState
    owner: str = ""
    note: str = ""
    link: str = ""
    expires: str = ""
    """Date; empty: never."""
    decided_at: str = ""
    """UTC, ISO 8601."""
    again: bool = False
    """Marked fixed, and found in a run that started after that."""
    effect: Number = 0.0
    """Log ratio of latency that was decided about; 0: of numerics, or not known."""
    told: str = ""
    """Why people were told all the same when the run was judged: ``regressed again, marked fixed on …``,
    ``acknowledged until …, which has passed``; empty: they were not."""


@dataclass(frozen=True, slots=True)
class PhoneChange:
    """One phone's part in a finding."""

    device_id: str
    effect: Number
    before_ns: Number
    """Median of its baseline nights."""
    after_ns: Number
    nights: int
    """Of its baseline."""


@dataclass(frozen=True, slots=True)
class InTurns:
    """Both codes of a finding measured in turns on one phone: a duel without its samples."""

    device_id: str
    answer: Literal["different", "same", "unknown"]
    effect: Number
    """Log ratio of tonight's code to the baseline's; NaN without a valid pair."""
    low: Number
    high: Number
    p: Number
    pairs: int
    """Measured; 0: none, and ``why`` says why."""
    valid: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    finding_id: str
    """The same every night that shows it: of kind, SoC or device, case, direction or flag, baseline epoch."""
    kind: Kind
    what: Literal[
        "regressed", "improved", "hash_changed", "nmse_doubled", "limit_crossed", "nondeterministic"
    ]
    soc: str
    case_id: str
    """Or ``EVERYTHING``."""
    device_id: str = ""
    """Of an item of one phone, which is a matter of the phone's health; empty: of the SoC."""
    cause: Cause = "environment"
    effect: Number = 0.0
    """Log ratio of latency; of numerics: log10 ratio of NMSE."""
    low: Number = 0.0
    high: Number = 0.0
    """95 % interval of ``effect``."""
    q: Number = 1.0
    """False discovery rate at which it is found."""
    confirmed: Confirmed = "not asked"
    confirmed_in: str = ""
    """Earlier run whose answer this is, duels included: a finding is asked about once. Empty: tonight's."""
    not_asked: NotAsked = ""
    known_since: str = ""
    """First run that said it since its baseline, where ``not_asked`` is ``known``."""
    phones: list[PhoneChange] = field(default_factory=list[PhoneChange])
    since: str = ""
    """First run that shows it."""
    baseline: list[str] = field(default_factory=list[str])
    """Runs that it is compared with, oldest first."""
    code_before: str = ""
    code_after: str = ""
    environment_before: str = ""
    """Driver and OS build."""
    environment_after: str = ""
    detail: str = ""
    """One sentence with numbers."""
    duels: list[InTurns] = field(default_factory=list[InTurns])
    """One a phone that was asked; empty where the code did not change."""
    expected: str = ""
    """Why it is no news although nobody decided about it: a known slowness or flake of the matrix."""
    triage: Triage | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Findings with one cause, on one SoC or on several."""

    group_id: str
    sentence: str
    """``all fp16_storage variants on SM8650 since driver 744``"""
    cause: Cause
    what: str
    soc: str
    """Empty: several, which ``socs`` lists."""
    socs: list[str] = field(default_factory=list[str])
    since: str = ""
    """First run that shows it."""
    changed: str = ""
    """What is new since then: ``driver 744``, ``code``; empty: not known."""
    effect: Number = 0.0
    """Median log ratio of its findings."""
    named: int = 0
    """Judged variants that the group's terms name, findings or not."""
    kernel: str = ""
    """Empty: several."""
    axis: str = ""
    value: str = ""
    findings: list[str] = field(default_factory=list[str])
    """Ids, the largest effect first."""


@dataclass(frozen=True, slots=True)
class SeriesRow:
    """A case on a SoC: one row of the report's table."""

    soc: str
    case_id: str
    verdict: SpeedWord
    why: str = ""
    """Of inconclusive, new and missing."""
    effect: Number = 0.0
    detectable: Number = 0.0
    """Smallest effect that would have been found with 80 % power."""
    latency_ns: Number = 0.0
    """Tonight, of the fastest phone; NaN: none."""
    phones: int = 0
    history: list[Number] = field(default_factory=list[Number])
    """Log ratio to the baseline for the last nights (``Findings.nights``), mean over phones; NaN: none."""
    flags: list[NumericsWord] = field(default_factory=list[NumericsWord])


@dataclass(frozen=True, slots=True)
class DeviceNight:
    """A phone in one night: its common shift, charted by itself, and its health."""

    device_id: str
    soc: str
    shift: list[Number] = field(default_factory=list[Number])
    """Log ratio of all its variants together, night by night as in ``Findings.nights``."""
    sentinels: list[Number] = field(default_factory=list[Number])
    """The same over the frozen sentinel cases."""
    verdict: SpeedWord = "same"
    environment: list[str] = field(default_factory=list[str])
    """Night by night; empty: not there."""
    items: list[str] = field(default_factory=list[str])
    """Sentences about its health: alone slower, throttled, hot, not seen."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How far a SoC's speed is from a pinned run by now; one entry for each SoC, kernel and pinned run.

    Each phone is compared with itself, phones are averaged, and the median over cases is what stands here.
    """

    baseline: str
    """Name of the pin: ``release-2.1``."""
    run_id: str
    """Pinned run."""
    soc: str
    kernel: str
    """Empty: all of them."""
    effect: Number
    """Log ratio of latency since then."""
    phones: int
    """That were there both times."""
    cases: int
    sentence: str
    """``since release-2.1: 6.1 % slower``"""


@dataclass(frozen=True, slots=True)
class Findings:
    run_id: str
    suite: str
    nights: list[str]
    """Run ids that were looked at, this one last."""
    sentence: str
    """The verdict."""
    counts: dict[str, int]
    """Of variants on SoCs: regressed, improved, numerics, inconclusive, missing, new, same; of findings that
    nobody is told of: acknowledged, noise, accepted, fixed, expected."""
    not_measured: list[str] = field(default_factory=list[str])
    """Sentences: missed nights, missing phones, too few nights."""
    groups: list[Group] = field(default_factory=list[Group])
    findings: list[Finding] = field(default_factory=list[Finding])
    """Confirmed by a second measurement, or never asked for one."""
    unconfirmed: list[Finding] = field(default_factory=list[Finding])
    """Found first and not found again, or left open by the second measurement: no alarm, their rows are
    inconclusive."""
    series: list[SeriesRow] = field(default_factory=list[SeriesRow])
    devices: list[DeviceNight] = field(default_factory=list[DeviceNight])
    method: dict[str, Number] = field(default_factory=dict[str, Number])
    """Parameters of the rule."""
    unexpected: list[str] = field(default_factory=list[str])
    """Sentences: what is better than the matrix expects, and known flakes that flake no more."""
    drift: list[Drift] = field(default_factory=list[Drift])
    """Since each pinned run: SoC by SoC, all kernels together first, then each kernel that moved."""
    format: int = FINDINGS_FORMAT
