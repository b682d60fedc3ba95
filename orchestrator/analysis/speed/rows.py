"""Order statistics of many short rows at once, NaN being absent. Faster than numpy's nan functions by far."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def indices(n: int) -> Ints:
    """0 … n − 1"""
    return np.arange(n, dtype=np.int64)


def ordered(values: Floats) -> tuple[Floats, Ints]:
    """Each row ascending with its NaN last, and how many are no NaN. (rows, n) → (rows, n), (rows,)."""
    return np.sort(values, axis=1), np.count_nonzero(~np.isnan(values), axis=1).astype(np.int64)


def quantile(rows: Floats, low: Ints, count: Ints, q: float) -> Floats:
    """Of ``rows[i, low[i] : low[i] + count[i]]``, ascending; NaN where that is empty.

    Linear interpolation between closest ranks (Hyndman and Fan's type 7), as ``analysis.stats.quantile``.
    """
    at = q * np.maximum(count - 1, 0)
    below = np.floor(at).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(count - 1, 0))
    index = indices(len(rows))
    last = rows.shape[1] - 1
    left = rows[index, np.minimum(low + below, last)]
    right = rows[index, np.minimum(low + above, last)]
    return np.where(count > 0, left + (right - left) * (at - below), np.nan)


def median(values: Floats) -> Floats:
    """Of each row without its NaN; NaN for a row of nothing else."""
    if values.shape[1] == 0:
        return np.full(len(values), np.nan)
    rows, count = ordered(values)
    return quantile(rows, np.zeros_like(count), count, 0.5)


def mean_and_variance(values: Floats) -> tuple[Floats, Floats, Ints]:
    """Of each row without its NaN, with the count; variance by count − 1. NaN where it is not defined."""
    known = ~np.isnan(values)
    count = np.count_nonzero(known, axis=1).astype(np.int64)
    filled = np.where(known, values, 0.0)
    mean = np.where(count > 0, filled.sum(axis=1) / np.maximum(count, 1), np.nan)
    off = np.where(known, values - mean[:, None], 0.0)
    spread = (off * off).sum(axis=1) / np.maximum(count - 1, 1)
    return mean, np.where(count > 1, spread, np.nan), count


def group_medians(values: Floats, group: Ints, groups: int) -> tuple[Floats, Ints]:
    """Median without NaN of the values of each group 0 … groups − 1, and their number. Shapes (n,), (n,)."""
    known = ~np.isnan(values)
    kept, of = values[known], group[known]
    rows = kept[np.lexsort((kept, of))]
    count = np.bincount(of, minlength=groups).astype(np.int64)
    first = np.cumsum(count) - count
    if rows.size == 0:
        return np.full(groups, np.nan), count
    low = np.minimum(first + np.maximum(count - 1, 0) // 2, rows.size - 1)
    high = np.minimum(first + count // 2, rows.size - 1)
    return np.where(count > 0, (rows[low] + rows[high]) / 2, np.nan), count


def newest(fits: Bools, count: int | Ints) -> Bools:
    """(rows, n) The last ``count`` of each row that fit; one number for all rows, or (rows,)."""
    newest_first = np.cumsum(fits[:, ::-1], axis=1)[:, ::-1]
    return fits & (newest_first <= np.reshape(count, (-1, 1)))


def last_known(values: Ints, known: Bools) -> Ints:
    """(rows,) The last value of each row that is known; the last one of all where none is."""
    at = values.shape[1] - 1 - known[:, ::-1].argmax(axis=1)
    return values[indices(len(values)), at]
