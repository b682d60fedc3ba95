"""How long until a hot phone is cool: Newton's law fitted to what it was seen to do, not a fixed sleep.

T(t) = T∞ + (T0 − T∞)·exp(−t/τ). For each τ of a grid the other two are a linear least-squares problem; the τ
with the smallest residual wins. Fixed cool-downs of others: 10 s (ncnn) to 300 s (MLPerf Mobile).
"""

import math
from collections.abc import Sequence

import numpy as np

TIME_CONSTANTS_S = np.geomspace(20.0, 3600.0, 120)
"""A phone's battery follows its surroundings with minutes; the grid is far wider."""
ENOUGH = 4
"""Samples before a curve of three unknowns says anything."""


def seconds_until(samples: Sequence[tuple[float, float]], target_c: float) -> float | None:
    """Seconds after the last sample until the temperature is at most ``target_c``.

    Args:
        samples: (seconds, °C), in order of time.

    Returns:
        0 when it is cool already; None when the samples are too few, or the curve never gets there.
    """
    if samples and samples[-1][1] <= target_c:
        return 0.0
    if len(samples) < ENOUGH:
        return None
    times = np.array([t - samples[-1][0] for t, _ in samples])
    values = np.array([c for _, c in samples])
    best = min((_fit(times, values, float(tau)) for tau in TIME_CONSTANTS_S), key=lambda fit: fit[0])
    _, tau, end, above = best
    if above <= 0 or end >= target_c:
        return None
    return max(0.0, tau * math.log(above / (target_c - end)))


def _fit(times: np.ndarray, values: np.ndarray, tau: float) -> tuple[float, float, float, float]:
    """(residual, τ, T∞, T − T∞ at the last sample)."""
    design = np.column_stack([np.ones_like(times), np.exp(-times / tau)])
    solution, _, _, _ = np.linalg.lstsq(design, values, rcond=None)
    residual = float(np.square(design @ solution - values).sum())
    return residual, tau, float(solution[0]), float(solution[1])
