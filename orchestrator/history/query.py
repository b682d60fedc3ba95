"""Questions to the history, answered by DuckDB straight from the trial files."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.speed.night import Basis
from orchestrator.analysis.speed.rows import Bools, Floats, Ints, indices
from orchestrator.history.connection import Connection
from orchestrator.history.trial_rows import COLUMNS, SAMPLES

NUMERICS = ("nmse", "max_abs", "max_rel", "ulp_max", "cosine")
TYPES = {
    "name": "VARCHAR",
    "text": "VARCHAR",
    "flag": "BOOLEAN",
    "small": "TINYINT",
    "count": "INTEGER",
    "big": "BIGINT",
    "real": "DOUBLE",
    "counts": "INTEGER[]",
    "bigs": "BIGINT[]",
}
"""Of the kinds of ``trial_files``."""
_EMPTY = ", ".join(f"NULL::{TYPES[kind]} AS {name}" for name, kind in COLUMNS.items())
_FILES = f"""(
    FROM read_parquet($files, union_by_name = true) UNION ALL BY NAME (SELECT {_EMPTY} LIMIT 0)
)"""
"""Columns that files of an earlier version lack are null; those that a later one added are left."""
_WORDS = {
    "code_hash": "SELECT word FROM codes ORDER BY number",
    "driver": "SELECT word FROM drivers ORDER BY number",
    "hash": "SELECT word FROM outputs ORDER BY number",
    "verdict": "SELECT word FROM verdicts ORDER BY number",
}
_TRIALS = """
CREATE TEMP TABLE trials AS
SELECT run_id, device_id, case_id, log_ns, clock_hz, basis, no_number, measured, hashes, nmse, max_abs,
       max_rel, ulp_max, cosine, coalesce(code_hash, '') AS code_hash, coalesce(driver, '') AS driver,
       coalesce(hash, '') AS hash, coalesce(verdict, '') AS verdict
FROM {files} WHERE role IS DISTINCT FROM 'canary'
"""
_NIGHTS = "CREATE TEMP TABLE nights AS SELECT unnest($runs) AS run_id, unnest(range(len($runs))) AS night"
_NUMBERED = (
    """CREATE TEMP TABLE series AS SELECT device_id, case_id,
       row_number() OVER (ORDER BY device_id, case_id) - 1 AS series
       FROM (SELECT DISTINCT device_id, case_id FROM trials)""",
    """CREATE TEMP TABLE codes AS
       SELECT code_hash AS word, row_number() OVER (ORDER BY code_hash) - 1 AS number
       FROM (SELECT DISTINCT code_hash FROM trials)""",
    """CREATE TEMP TABLE drivers AS
       SELECT driver AS word, row_number() OVER (ORDER BY driver) - 1 AS number
       FROM (SELECT DISTINCT driver FROM trials)""",
    """CREATE TEMP TABLE outputs AS
       SELECT hash AS word, row_number() OVER (ORDER BY hash) - 1 AS number
       FROM (SELECT DISTINCT hash FROM trials)""",
    """CREATE TEMP TABLE verdicts AS
       SELECT verdict AS word, row_number() OVER (ORDER BY verdict) - 1 AS number
       FROM (SELECT DISTINCT verdict FROM trials)""",
)
_JOINED = """
SELECT series, night, log_ns, clock_hz, basis, no_number, measured, hashes, c.number AS code_hash,
       d.number AS driver, o.number AS hash, v.number AS verdict, nmse, max_abs, max_rel, ulp_max, cosine
FROM trials t JOIN series USING (device_id, case_id) JOIN nights USING (run_id)
     JOIN codes c ON t.code_hash = c.word JOIN drivers d ON t.driver = d.word
     JOIN outputs o ON t.hash = o.word JOIN verdicts v ON t.verdict = v.word
"""
_SERIES = """
SELECT {columns} FROM {files}
WHERE case_id IN ({cases}) AND device_id IN ({devices}) ORDER BY started_at, run_id
"""
_FAILURES = """
SELECT run_id, device_id, case_id, verdict, reason, code_hash, driver
FROM {files}
WHERE role = 'op' AND verdict NOT IN ('pass', 'infra') ORDER BY run_id, case_id, device_id
"""
_WALL = """
SELECT device_id, case_id, bool_and(clock = 'wall') AS always FROM {files}
WHERE clock <> '' GROUP BY device_id, case_id HAVING bool_or(clock = 'wall')
"""
_CLOCKS = """
SELECT device_id, case_id, median(clock_hz) AS hz FROM {files}
WHERE basis = $basis GROUP BY device_id, case_id
"""


@dataclass(frozen=True, slots=True)
class NightTable:
    """Series × nights, the newest night last; NaN or −1 where a series has no trial in a night."""

    runs: list[str]
    """(nights,) run ids"""
    series: list[tuple[str, str]]
    """(series,) device id and case id, sorted"""
    log_ns: Floats
    """(series, nights), like all below"""
    clock_hz: Floats
    basis: NDArray[np.int8]
    no_number: NDArray[np.int8]
    measured: Ints
    code: Ints
    """Index into ``codes``."""
    driver: Ints
    """Index into ``drivers``."""
    hash: Ints
    """Index into ``hashes``."""
    verdict: Ints
    """Index into ``verdicts``."""
    distinct: Ints
    """Different outputs of the trial's replays."""
    numerics: Mapping[str, Floats]
    codes: list[str] = field(default_factory=list[str])
    drivers: list[str] = field(default_factory=list[str])
    hashes: list[str] = field(default_factory=list[str])
    verdicts: list[str] = field(default_factory=list[str])

    def of(self, kept: Sequence[int]) -> "NightTable":
        """Some of its series."""
        if len(kept) == len(self.series):
            return self
        at = np.array(kept, np.int64)
        return replace(
            self,
            series=[self.series[n] for n in kept],
            log_ns=self.log_ns[at],
            clock_hz=self.clock_hz[at],
            basis=self.basis[at],
            no_number=self.no_number[at],
            measured=self.measured[at],
            code=self.code[at],
            driver=self.driver[at],
            hash=self.hash[at],
            verdict=self.verdict[at],
            distinct=self.distinct[at],
            numerics={name: values[at] for name, values in self.numerics.items()},
        )

    def code_text(self, series: int, night: int) -> str:
        """Empty: no trial, as below."""
        return _word(self.codes, self.code[series, night])

    def driver_text(self, series: int, night: int) -> str:
        return _word(self.drivers, self.driver[series, night])

    def hash_text(self, series: int, night: int) -> str:
        return _word(self.hashes, self.hash[series, night])

    def verdict_text(self, series: int, night: int) -> str:
        return _word(self.verdicts, self.verdict[series, night])


def _word(words: Sequence[str], number: np.int64) -> str:
    return words[int(number)] if number >= 0 else ""


def night_table(files: Mapping[str, Path]) -> NightTable:
    """All series of some runs.

    Args:
        files: run id → its trial file, oldest first.

    Raises:
        InfraError: a file is missing or damaged.
    """
    runs = list(files)
    with Connection() as ask:
        ask.run(_TRIALS.format(files=_FILES), {"files": [str(path) for path in files.values()]})
        ask.run(_NIGHTS, {"runs": runs})
        for numbered in _NUMBERED:
            ask.run(numbered)
        words = {name: [row["word"] for row in ask.rows(sql)] for name, sql in _WORDS.items()}
        found = ask.columns(_JOINED)
        names = ask.columns("SELECT device_id, case_id FROM series ORDER BY series")
    series = list(zip(names["device_id"].tolist(), names["case_id"].tolist(), strict=True))
    at = (found["series"].astype(np.int64), found["night"].astype(np.int64))
    shape = (len(series), len(runs))

    def real(name: str) -> Floats:
        values = np.full(shape, np.nan)
        values[at] = np.ma.filled(found[name].astype(np.float64), np.nan)
        return values

    def whole(name: str, absent: int, kind: type[np.integer[Any]] = np.int64) -> NDArray[Any]:
        values = np.full(shape, absent, kind)
        values[at] = np.ma.filled(found[name], absent)
        return values

    return NightTable(
        runs=runs,
        series=series,
        log_ns=real("log_ns"),
        clock_hz=real("clock_hz"),
        basis=whole("basis", 0, np.int8),
        no_number=whole("no_number", 0, np.int8),
        measured=whole("measured", 0),
        code=whole("code_hash", -1),
        driver=_named(whole("driver", -1), words["driver"]),
        hash=whole("hash", -1),
        verdict=whole("verdict", -1),
        distinct=whole("hashes", 0),
        numerics={name: real(name) for name in NUMERICS},
        codes=words["code_hash"],
        drivers=words["driver"],
        hashes=words["hash"],
        verdicts=words["verdict"],
    )


def _named(driver: Ints, words: Sequence[str]) -> Ints:
    """A trial that died before it named its driver has that of the series' night before, else of a later one:
    the next night's would look like a new one."""
    if "" not in words:
        return driver
    named: Bools = np.array([*map(bool, words), False], np.bool_)[driver]
    night: Ints = np.maximum.accumulate(np.where(named, indices(driver.shape[1]), -1), axis=1)
    night = np.where(night < 0, named.argmax(axis=1, keepdims=True), night)
    known: Bools = (driver >= 0) & named.any(axis=1, keepdims=True)
    return np.where(known, np.take_along_axis(driver, night, axis=1), driver)


@dataclass(frozen=True, slots=True)
class FailedTrial:
    """A trial of a variant that did not pass, for a reason that is not infrastructure's."""

    run_id: str
    device_id: str
    case_id: str
    verdict: str
    reason: str
    code_hash: str
    driver: str


def failed_trials(files: Sequence[Path]) -> list[FailedTrial]:
    """Oldest run first.

    Raises:
        InfraError: a file is missing or damaged.
    """
    with Connection() as ask:
        rows = ask.rows(_FAILURES.format(files=_FILES), {"files": [str(p) for p in files]})
    return [FailedTrial(**row) for row in rows]


def wall_clocked(files: Sequence[Path]) -> dict[tuple[str, str], bool]:
    """(device, case) of series that the wall clock timed, because no GPU timer could be trusted: whether in
    all of their trials.

    Raises:
        InfraError: a file is missing or damaged.
    """
    with Connection() as ask:
        rows = ask.rows(_WALL.format(files=_FILES), {"files": [str(p) for p in files]})
        return {(row["device_id"], row["case_id"]): row["always"] for row in rows}


def median_clocks(files: Sequence[Path]) -> dict[tuple[str, str], float]:
    """(device, case) → median clock of its nights, in Hz; series without clock data are left out.

    Raises:
        InfraError: a file is missing or damaged.
    """
    with Connection() as ask:
        given = {"files": [str(p) for p in files], "basis": int(Basis.CLOCK_STATE)}
        rows = ask.rows(_CLOCKS.format(files=_FILES), given)
        return {(row["device_id"], row["case_id"]): row["hz"] for row in rows}


def one_series(
    files: Sequence[Path], device_id: str, case_id: str, *, samples: bool = True
) -> list[dict[str, Any]]:
    """Every trial of one case on one device, oldest first.

    Args:
        samples: raw ones, too, where they are kept: that takes twice as long.

    Raises:
        InfraError: a file is missing or damaged.
    """
    return some_series(files, [(device_id, case_id)], samples=samples)[device_id, case_id]


def some_series(
    files: Sequence[Path], wanted: Collection[tuple[str, str]], *, samples: bool = True
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """``one_series`` of many at once: (device, case) → its trials. Files are opened once for all of them.

    Raises:
        InfraError: a file is missing or damaged.
    """
    found: dict[tuple[str, str], list[dict[str, Any]]] = {key: [] for key in wanted}
    if not found:
        return found
    # Named one by one: DuckDB holds such a list against the row groups' smallest and largest words.
    devices = {f"d{n}": device for n, device in enumerate(sorted({d for d, _ in found}))}
    cases = {f"c{n}": case for n, case in enumerate(sorted({c for _, c in found}))}
    sql = _SERIES.format(
        files=_FILES,
        columns="*" if samples else f"COLUMNS(lambda c: c NOT IN {SAMPLES})",
        cases=", ".join(f"${name}" for name in cases),
        devices=", ".join(f"${name}" for name in devices),
    )
    with Connection() as ask:
        for row in ask.rows(sql, {"files": [str(path) for path in files]} | devices | cases):
            if (key := (row["device_id"], row["case_id"])) in found:
                found[key].append(row)
    return found
