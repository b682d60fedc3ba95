"""Made-up times of a phone with the noise that ../shared/statistics.md assumes, all series at once."""

from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.speed.night import Samples
from orchestrator.analysis.speed.rows import Floats

FAST_HZ, SLOW_HZ = 900e6, 720e6


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard deviations of logarithms."""

    night_sd: float = 0.015
    """From night to night, shared by all variants of a phone (temperature, boot)."""
    own_sd: float = 0.0
    """From night to night, of each variant by itself."""
    sample_sd: float = 0.02
    rho: float = 0.5
    """AR(1) between neighbouring samples."""
    slow_share: float = 0.2
    slow_factor: float = 1.25
    slow_run: float = 1.0
    """Mean length of a visit to the slow state is ``slow_run`` times that of independent samples."""
    samples: int = 20
    clocks: bool = True
    """The device shows its clock."""
    missing: float = 0.0
    """Share of a phone's nights without any result."""


def draw(rng: np.random.Generator, level: Floats, noise: Noise, samples: int = 0) -> Samples:
    """``level``: (series,) log ns at the fast clock, or (series, samples) where samples differ."""
    n = samples or noise.samples
    rows = len(level)
    base = level[:, None] if level.ndim == 1 else level
    slow = _slow(rng, rows, n, noise)
    log_ns = base + _ar1(rng, rows, n, noise) + np.where(slow, np.log(noise.slow_factor), 0.0)
    hz = np.where(slow, SLOW_HZ, FAST_HZ) * (1 + rng.uniform(-0.01, 0.01, (rows, n)))
    return Samples(
        latency_ns=np.round(np.exp(log_ns)).astype(np.float64),
        gpu_hz=hz if noise.clocks else np.full((rows, n), np.nan),
        temp_mc=np.full((rows, n), 33_000.0),
        throttled=np.zeros((rows, n), np.bool_),
    )


def _ar1(rng: np.random.Generator, rows: int, n: int, noise: Noise) -> Floats:
    out = rng.standard_normal((n, rows))
    fresh = np.sqrt(1 - noise.rho**2)
    for i in range(1, n):
        out[i] = noise.rho * out[i - 1] + fresh * out[i]
    return noise.sample_sd * out.T


def _slow(
    rng: np.random.Generator, rows: int, n: int, noise: Noise
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """A two-state chain; with ``slow_run`` 1 samples are independent."""
    draws = rng.random((n, rows))
    state = draws < noise.slow_share
    stay = 1 - 1 / noise.slow_run
    keeps = rng.random((n, rows)) < stay
    for i in range(1, n):
        state[i] = np.where(keeps[i], state[i - 1], state[i])
    return state.T
