"""Where a series' baseline starts anew, and where it goes on with a mark (G4-03)."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from orchestrator.analysis.speed.causes import EnvironmentKey
from orchestrator.analysis.speed.rows import Ints


def epochs(phones: Sequence[str], accepted_shift: Sequence[bool]) -> Ints:
    """(nights,) ``phones``: identity that the phone itself tells (serial property), night by night; never
    its name, port or boot. ``accepted_shift``: nights from which a person accepts a new level. Both start
    anew."""
    swapped = [a != b for a, b in zip(phones, [*phones[:1], *phones[:-1]], strict=True)]
    return np.cumsum([s or a for s, a in zip(swapped, accepted_shift, strict=True)]).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Mark:
    """The phone's software changed in this night; the history goes on, so that its effect shows."""

    night: int
    what: str
    """``driver 743 → 744``"""


def marks(keys: Sequence[EnvironmentKey]) -> tuple[Mark, ...]:
    found: list[Mark] = []
    for night, (old, new) in enumerate(pairwise(keys), start=1):
        for field in fields(EnvironmentKey):
            before, after = getattr(old, field.name), getattr(new, field.name)
            if before != after:
                found.append(Mark(night, f"{field.name.replace('_', ' ')} {before} → {after}"))
    return tuple(found)
