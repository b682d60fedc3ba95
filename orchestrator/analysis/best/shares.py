"""How steadily a variant is the best one: phone by phone, night by night."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.best.levels import Levels
from orchestrator.analysis.best.pick import NEAR
from orchestrator.analysis.speed.rows import Floats, Ints


@dataclass(frozen=True, slots=True)
class Shares:
    """One entry a phone: (phones,) each."""

    nights: Ints
    """In which the variant was measured."""
    won: Ints
    near: Ints
    """Within 2 % of the fastest of its night."""
    loss: Floats
    """Log ratio to the fastest of the phone over all its nights; NaN where it was never measured."""


def shares(log_ns: Floats, found: Levels, variant: int, among: Sequence[int]) -> Shares:
    """Of one variant against those that it was chosen from."""
    rows = list(among)
    own = np.where(found.used[variant], log_ns[variant], np.nan)
    all_of = np.where(found.used[rows], log_ns[rows], np.inf)
    behind = own - all_of.min(axis=0)
    there = np.isfinite(behind)
    best = np.where(np.isnan(found.own[rows]), np.inf, found.own[rows]).min(axis=0)
    loss = found.own[variant] - best
    return Shares(
        nights=there.sum(axis=1),
        won=(there & (behind <= 0)).sum(axis=1),
        near=(there & (behind <= NEAR)).sum(axis=1),
        loss=np.where(np.isfinite(loss), loss, np.nan),
    )
