"""Small inputs of the speed analysis, made by hand."""

import numpy as np

from orchestrator.analysis.speed.baseline import History, Tonight
from orchestrator.analysis.speed.night import Basis, Samples
from orchestrator.analysis.speed.rows import Floats, Ints

MS = 1e6
HZ = 900e6


def samples(
    *rows: list[float], hz: Floats | None = None, temp_c: Floats | None = None, battery_c: float | None = None
) -> Samples:
    """Rows in milliseconds, padded with NaN."""
    width = max(len(r) for r in rows)
    ms = np.array([[*r, *[np.nan] * (width - len(r))] for r in rows], np.float64)
    nan = np.full(ms.shape, np.nan)
    temps = nan if temp_c is None else np.asarray(temp_c, np.float64) * 1000
    return Samples(
        ms * MS,
        nan if hz is None else np.asarray(hz, np.float64),
        temps,
        np.zeros(ms.shape, np.bool_),
        None if battery_c is None else np.full(len(ms), battery_c * 1000),
    )


def past(log_ns: Floats) -> History:
    """Every night accepted, one epoch, one clock."""
    shape = log_ns.shape
    basis = np.full(shape, Basis.CLOCK_STATE, np.int8)
    return History(log_ns, np.ones(shape, np.bool_), basis, np.full(shape, HZ), np.zeros(shape, np.int64))


def tonight(log_ns: Floats, epoch: Ints | None = None) -> Tonight:
    n = len(log_ns)
    basis = np.where(np.isnan(log_ns), Basis.NONE, Basis.CLOCK_STATE).astype(np.int8)
    clock = np.where(np.isnan(log_ns), np.nan, HZ)
    return Tonight(log_ns, basis, clock, np.zeros(n, np.int64) if epoch is None else epoch)
