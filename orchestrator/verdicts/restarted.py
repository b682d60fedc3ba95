"""Where accepted shifts began new baselines, series by series and night by night."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.speed.rows import Bools, Ints
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.triage.restarts import Restarts

MOVED = (SPEEDS.index(Speed.REGRESSED), SPEEDS.index(Speed.IMPROVED))


@dataclass(frozen=True, slots=True)
class Epochs:
    """(series, nights) each."""

    speed: Ints
    """How often a person accepted a shift of its speed up to then."""
    numerics: Ints
    """The same of what it computes."""
    told: Bools
    """It told a shift that was accepted: it is one of the first nights of the new baseline."""


def epochs(
    runs: Sequence[str],
    series: Sequence[tuple[str, str]],
    said: Ints,
    restarts: Restarts,
    socs: Mapping[str, str],
) -> Epochs:
    """
    Args:
        runs: of the nights.
        series: device and case; of a phone as a whole the case is ``EVERYTHING``.
        said: (series, nights) codes of ``verdicts.SPEEDS``.
        socs: device → SoC.
    """
    found = Epochs(np.zeros_like(said), np.zeros_like(said), np.zeros(said.shape, np.bool_))
    if not restarts:
        return found
    names = np.array(runs)
    for row, (device, case) in enumerate(series):
        soc = socs.get(device, "")
        for restart in restarts.of_series("speed", soc, device, case):
            later = names >= restart.since
            found.speed[row] += later
            found.told[row] |= later & (names <= restart.seen_in) & np.isin(said[row], MOVED)
        for restart in restarts.of_series("numerics", soc, device, case):
            found.numerics[row] += names >= restart.since
    return found
