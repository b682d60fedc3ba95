"""Time and memory of the analysis at 400,000 series: 200 phones, 2,000 variants, 14 nights, 20 samples."""

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.simulation.farm import Farm, Size
from benchmarks.simulation.noise import Noise, draw
from orchestrator.analysis.speed.analyse import analyse
from orchestrator.analysis.speed.changepoint import segments
from orchestrator.analysis.speed.night import Samples, summarise
from orchestrator.analysis.speed.plan import plan
from orchestrator.analysis.speed.verdicts import Turns, verdicts


@dataclass(frozen=True, slots=True)
class Cost:
    what: str
    wall_s: float
    cpu_s: float
    peak_mib: float
    """Of the process so far."""


def costs(phones: int = 200, variants: int = 2_000, scan: int = 400_000) -> list[Cost]:
    rng = np.random.default_rng(1)
    farm = Farm(rng, Noise(), Size(phones // 4, 4, variants))
    for _ in range(14):
        farm.keep(farm.measure())
    tonight = draw(rng, farm.level, Noise())
    history, matrix = farm.history(), farm.matrix()
    found: list[Cost] = []

    def timed(what: str, work: Callable[[], object]) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        found.append(Cost(what, time.perf_counter() - wall, time.process_time() - cpu, peak))

    def whole_night() -> None:
        first = summarise(tonight)
        night = analyse(matrix, history, farm.tonight(first))
        chosen = plan(matrix, night, int(first.measured.sum()))
        verdicts(matrix, night, first.measured > 0, chosen, Turns.none(len(farm.level)))

    no_clock = np.full(tonight.gpu_hz.shape, np.nan)
    blind = Samples(tonight.latency_ns, no_clock, tonight.temp_mc, tonight.throttled)
    timed(f"night of {len(farm.level):,} series: samples to verdicts", whole_night)
    timed("of which samples to one number each, clocks shown", lambda: summarise(tonight))
    timed("the same, no clock shown", lambda: summarise(blind))
    season = rng.normal(0, 0.01, (scan, 90))
    timed(f"change-point scan of {scan:,} series over 90 nights", lambda: segments(season))
    return found
