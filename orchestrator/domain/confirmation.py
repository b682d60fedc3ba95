"""A second look in the same night at what the first one found (confirmation.json, format 1).

Where the code changed, the baseline's code and tonight's are measured in turns on one phone (a duel); where
it did not, the case is measured once more.
"""

from dataclasses import dataclass, field
from math import nan
from typing import Literal

from orchestrator.domain.finding import Confirmed, InTurns
from orchestrator.domain.number import Number
from orchestrator.domain.trial import Trial

CONFIRMATION_FORMAT = 1
How = Literal["turns", "again"]
Whose = Literal["soc", "phone"]
DuelAnswer = Literal["different", "same", "unknown"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One question to one phone."""

    device_id: str
    case_id: str
    how: How
    code_before: str = ""
    """Code hash of the baseline; of turns."""
    code_after: str = ""
    baseline_run: str = ""
    """Last run with ``code_before``: its folder has the job, its blobs the shader."""
    whose: Whose = "soc"
    """Asked for a finding on the phone's SoC, or for one of this phone alone."""
    p: Number = 1.0
    """Of the first look at this series: the smallest is asked first."""
    threshold: Number = 0.0
    """Log ratio that matters; of turns."""


@dataclass(frozen=True, slots=True)
class Duel:
    """Two codes in turns A B B A A B B A …, A being the baseline's, in one thermal window."""

    wanted: Wanted
    answer: DuelAnswer
    effect: Number
    """Log ratio of B to A; NaN without a valid pair."""
    low: Number
    high: Number
    p: Number
    pairs: int
    """Measured; 0 where nothing was, which ``why`` explains."""
    valid: int
    latency_ns: list[int] = field(default_factory=list[int])
    """Samples in the order taken; sensors likewise, one each."""
    gpu_hz: list[Number] = field(default_factory=list[Number])
    temp_mc: list[Number] = field(default_factory=list[Number])
    throttled: list[bool] = field(default_factory=list[bool])
    """Held below its clock, or too warm."""
    why: str = ""
    """Why there is no answer: the phone went, a shader is gone, a run failed."""
    clock: Literal["", "gpu", "wall"] = ""
    """That timed all samples."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of one question whose finding stands: what later nights know of it."""

    run_id: str
    """That asked."""
    confirmed: Confirmed
    whose: Whose
    turns: InTurns | None = None
    again: Number = nan
    """Log ratio when measured once more."""
    why: str = ""
    """Why there is no answer."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    run_id: str
    duels: list[Duel] = field(default_factory=list[Duel])
    again: list[Trial] = field(default_factory=list[Trial])
    unpaid: int = 0
    """Findings beyond the night's budget of confirmation."""
    why: str = ""
    """Why nothing was asked, where findings wanted it; or why it was cut off."""
    wanted: list[Wanted] = field(default_factory=list[Wanted])
    """All that was asked; what has neither duel nor trial was not answered."""
    samples: int = 0
    """Timed samples that it took."""
    format: int = CONFIRMATION_FORMAT
