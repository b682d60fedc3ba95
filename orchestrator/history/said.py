"""What earlier nights said of each series, from the files of their verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.speed.rows import Ints
from orchestrator.domain.finding import EVERYTHING
from orchestrator.history.connection import Connection

_SAID = """
CREATE TEMP TABLE said AS
SELECT night, device_id, case_id, speed, accepted
FROM read_parquet($files, filename = true) JOIN
     (SELECT unnest($files) AS filename, unnest($nights) AS night) USING (filename)
"""
_WANTED = """
CREATE TEMP TABLE wanted AS
SELECT unnest($devices) AS device_id, unnest($cases) AS case_id, unnest(range(len($devices))) AS series
"""
_SAID_OF_SERIES = "SELECT series, night, speed, accepted FROM said JOIN wanted USING (device_id, case_id)"
_SAID_OF_WHOLE = "SELECT device_id, night, speed FROM said WHERE case_id = $whole ORDER BY device_id, night"


@dataclass(frozen=True, slots=True)
class Said:
    """What earlier nights said, one entry for each series and night."""

    series: Ints
    """Index into the series that were asked for."""
    night: Ints
    speed: Ints
    """Code of what was said."""
    accepted: NDArray[np.bool_]
    """It counts for baselines."""
    whole: list[tuple[str, int, int]]
    """(device id, night, code) of phones as a whole."""


def said_before(files: Mapping[str, Path], runs: Sequence[str], series: Sequence[tuple[str, str]]) -> Said:
    """
    Args:
        files: run id → its file of verdicts, for those of ``runs`` that were judged.
        runs: of the nights.
        series: device and case.

    Raises:
        InfraError: a file is missing or damaged.
    """
    if not files:
        none = np.zeros(0, np.int64)
        return Said(none, none, none, np.zeros(0, np.bool_), [])
    given = {
        "files": [str(path) for path in files.values()],
        "nights": [runs.index(run_id) for run_id in files],
    }
    names = {"devices": [d for d, _ in series], "cases": [c for _, c in series]}
    with Connection() as ask:
        ask.run(_SAID, given)
        ask.run(_WANTED, names)
        found = ask.columns(_SAID_OF_SERIES)
        whole = ask.rows(_SAID_OF_WHOLE, {"whole": EVERYTHING})
    return Said(
        series=found["series"].astype(np.int64),
        night=found["night"].astype(np.int64),
        speed=found["speed"].astype(np.int64),
        accepted=found["accepted"].astype(np.bool_),
        whole=[(row["device_id"], row["night"], row["speed"]) for row in whole],
    )
