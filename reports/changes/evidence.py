"""The trials behind a finding, from the history's rows: plain values, NaN where a row says nothing."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

from orchestrator.domain.finding import Finding

Row = Mapping[str, Any]
"""One trial as the history keeps it (orchestrator/history/trial_rows.py); columns may be missing."""


@dataclass(frozen=True, slots=True)
class Night:
    """One trial of the finding's case on one phone in one run."""

    run_id: str
    device_id: str
    started_at: str
    verdict: str
    latency_ns: float
    """That stands for the night; NaN: none does."""
    clock_hz: float
    """Median clock of the samples that stand for the night; NaN without clock data."""
    code_hash: str
    environment: str
    """Driver and OS build."""
    hash: str
    hashes: int
    nmse: float
    max_abs: float
    ulp_max: float
    cosine: float
    throttled: int
    hot: int
    used: int
    samples_ns: tuple[float, ...]
    """Empty: retention dropped them, or nothing was timed."""
    gpu_hz: tuple[float, ...]
    """Around each sample; empty where the device shows none."""
    temp_c: tuple[float, ...]


def nights(rows: Iterable[Row]) -> tuple[Night, ...]:
    """Oldest first; the last attempt of each run and phone."""
    last: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda r: (_text(r, "run_id"), _whole(r, "attempt"))):
        if _text(row, "run_id"):
            last[_text(row, "run_id"), _text(row, "device_id")] = row
    return tuple(_night(row) for row in last.values())


def nmse_history(finding: Finding, found: Sequence[Night], runs: Sequence[str], device: str) -> list[float]:
    """log10 of one phone's NMSE over its baseline's, run by run."""
    own = {n.run_id: math.log10(n.nmse) for n in found if n.device_id == device and n.nmse > 0}
    return against_baseline(finding, own, runs)


def against_baseline(finding: Finding, own: Mapping[str, float], runs: Sequence[str]) -> list[float]:
    """Run → logarithm of one phone's value, as differences to the middle of the finding's baseline nights;
    of those before it, or of all, where none of the baseline is there."""
    known = {r: v for r, v in own.items() if math.isfinite(v)}
    base = [known[r] for r in finding.baseline if r in known]
    base = base or [v for r, v in known.items() if not finding.since or r < finding.since]
    base = base or list(known.values())
    middle = sorted(base)[len(base) // 2] if base else math.nan
    return [known.get(run, math.nan) - middle for run in runs]


def phones(found: Sequence[Night]) -> tuple[str, ...]:
    """In the order of their first night."""
    return tuple(dict.fromkeys(n.device_id for n in found))


def _night(row: Row) -> Night:
    samples = _numbers(row, "samples_ns")
    parts = [_text(row, "driver"), _text(row, "os_build")]
    return Night(
        run_id=_text(row, "run_id"),
        device_id=_text(row, "device_id"),
        started_at=_text(row, "started_at"),
        verdict=_text(row, "verdict"),
        latency_ns=_latency(_number(row, "log_ns")),
        clock_hz=_number(row, "clock_hz"),
        code_hash=_text(row, "code_hash"),
        environment=", ".join(p for p in parts if p),
        hash=_text(row, "hash"),
        hashes=_whole(row, "hashes"),
        nmse=_number(row, "nmse"),
        max_abs=_number(row, "max_abs"),
        ulp_max=_number(row, "ulp_max"),
        cosine=_number(row, "cosine"),
        throttled=_whole(row, "throttled"),
        hot=_whole(row, "hot"),
        used=_whole(row, "used"),
        samples_ns=samples,
        gpu_hz=_around(_numbers(row, "gpu_hz"), len(samples)),
        temp_c=tuple(t / 1000 for t in _around(_numbers(row, "temp_mc"), len(samples))),
    )


def _latency(log_ns: float) -> float:
    return math.exp(log_ns) if math.isfinite(log_ns) and log_ns < 60 else math.nan


def _around(readings: tuple[float, ...], n: int) -> tuple[float, ...]:
    """Readings before each sample and after the last, as one value around each sample."""
    if not n or len(readings) != n + 1:
        return ()
    return tuple((a + b) / 2 for a, b in pairwise(readings))


def _text(row: Row, name: str) -> str:
    value = row.get(name)
    return "" if value is None else str(value)


def _number(row: Row, name: str) -> float:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    return float(value)


def _whole(row: Row, name: str) -> int:
    value = _number(row, name)
    return int(value) if math.isfinite(value) else 0


def _numbers(row: Row, name: str) -> tuple[float, ...]:
    values = row.get(name)
    if not isinstance(values, (list, tuple)):
        return ()
    return tuple(float(v) for v in cast("Sequence[Any]", values) if isinstance(v, (int, float)))
