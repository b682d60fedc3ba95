"""Numerics against the pinned baseline: five flags, each by itself, since each asks for another person."""

import math
from dataclasses import dataclass
from enum import StrEnum

FACTOR = 2.0
"""NMSE at least this many times the pinned one, or at most this part of it, is a change."""
_CONFIDENCE = 0.95


class NumericFlag(StrEnum):
    HASH_CHANGED = "hash changed"
    NMSE_DOUBLED = "NMSE doubled"
    LIMIT_CROSSED = "limit crossed"
    NONDETERMINISTIC = "nondeterministic"
    IMPROVED = "improved"


@dataclass(frozen=True, slots=True)
class NumericNight:
    """One output of one series in one night."""

    hash: str
    """Of the compared output; empty without one."""
    nmse: float
    limit: float
    """NMSE that the kernel allows; infinite where it gives none."""
    failing: int
    """Elements outside of the element-wise bound."""
    nonfinite: int
    """NaN and infinities where the reference has none."""
    executions: int
    other: int
    """Executions whose output differs from the compared one."""

    @property
    def right(self) -> bool:
        """Written so that NaN is wrong (G4-01)."""
        return self.nmse <= self.limit and self.failing == 0 and self.nonfinite == 0


def numeric_flags(pinned: NumericNight, tonight: NumericNight) -> tuple[NumericFlag, ...]:
    """In the order of ``NumericFlag``; none where nothing is to be said."""
    found: list[NumericFlag] = []
    # Which of a race's outputs is compared is chance, and no news night by night.
    steady = not pinned.other and not tonight.other
    if steady and pinned.hash and tonight.hash and pinned.hash != tonight.hash:
        found.append(NumericFlag.HASH_CHANGED)
    if (
        not tonight.nmse < FACTOR * pinned.nmse
        and tonight.nmse != pinned.nmse
        and not math.isnan(pinned.nmse)
    ):
        found.append(NumericFlag.NMSE_DOUBLED)
    if pinned.right and not tonight.right:
        found.append(NumericFlag.LIMIT_CROSSED)
    if tonight.other:
        found.append(NumericFlag.NONDETERMINISTIC)
    if _improved(pinned, tonight):
        found.append(NumericFlag.IMPROVED)
    return tuple(found)


def _improved(pinned: NumericNight, tonight: NumericNight) -> bool:
    if not tonight.right:
        return False
    steady = (
        pinned.other > 0
        and tonight.other == 0
        and tonight.executions >= executions_needed(pinned.other / pinned.executions)
    )
    return not pinned.right or tonight.nmse * FACTOR <= pinned.nmse != tonight.nmse or steady


def executions_needed(rate: float) -> int:
    """That show an output of this rate at least once with 95 % probability: 12 for 23 %, 59 for 5 %."""
    if not 0 < rate <= 1:
        raise ValueError(f"rate {rate}: more than 0 and at most 1 is needed")
    return 1 if rate == 1 else math.ceil(math.log(1 - _CONFIDENCE) / math.log1p(-rate))
