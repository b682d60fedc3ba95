"""How long the analysis and the history take, and how much memory; docs/measurements/history.txt.

    python -m benchmarks.history [--folder DIR] [--year-phones N] [--year-cases N] [PART ...]

Parts, each in a process of its own, whose peak memory is told:

- ``arrays``: 400,000 series (200 phones, 2,000 variants), 14 nights and tonight, 20 samples each, from raw
  samples to verdicts; and the change-point scan over 90 nights.
- ``files``: the same number of series out of Parquet files: 15 nights into arrays, then verdicts.
- ``year``: 365 nights of 10,000 series: one series out of all files; and the end of a night as `tilefarm run`
  has it: stored, judged, best variants, findings' details, pages.

``--folder`` keeps the files (2 to 5 GB) for another run.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np

from benchmarks.simulation.farm import Farm, Size
from benchmarks.simulation.noise import Noise, draw
from benchmarks.simulation.season import SUITE, Season, Shape
from orchestrator.analysis.speed.analyse import analyse
from orchestrator.analysis.speed.changepoint import segments
from orchestrator.analysis.speed.night import Samples, summarise
from orchestrator.analysis.speed.plan import plan
from orchestrator.analysis.speed.verdicts import Turns, verdicts
from orchestrator.cli.finish import finish_run
from orchestrator.domain.gate import Gate
from orchestrator.domain.settings import Settings
from orchestrator.execution.run_folder import RunFolder
from orchestrator.history.history import History
from orchestrator.history.query import one_series
from orchestrator.verdicts.nights import load
from orchestrator.verdicts.speed import judge

PARTS = ("arrays", "files", "year")
ASKED = 20
"""Series that are looked up, one after another; the median time is told."""
T = TypeVar("T")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="PART")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--phones", type=int, default=200)
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--year-phones", type=int, default=20)
    parser.add_argument("--year-cases", type=int, default=500)
    asked = parser.parse_args()
    if len(asked.parts) > 1:
        for part in asked.parts:
            words = [a for a in sys.argv[1:] if a not in PARTS]
            subprocess.run([sys.executable, "-m", "benchmarks.history", *words, part], check=True)
        return 0
    with tempfile.TemporaryDirectory(prefix="tilefarm-history-") as own:
        folder: Path = asked.folder or Path(own)
        match asked.parts[0]:
            case "arrays":
                arrays(asked.phones, asked.cases)
            case "files":
                files(folder / "files", Shape(asked.phones, asked.cases, 15))
            case "year":
                year(folder / "year", Shape(asked.year_phones, asked.year_cases, 365))
            case other:
                parser.error(f"part {other}: expected one of {', '.join(PARTS)}")
    return 0


def timed(what: str, work: Callable[[], T]) -> T:
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what:70} {wall:7.2f} s wall {cpu:7.2f} s CPU {peak:6.0f} MiB peak so far", flush=True)
    return found


def arrays(phones: int, cases: int) -> None:
    rng = np.random.default_rng(1)
    farm = Farm(rng, Noise(), Size(phones // 4, 4, cases))
    for _ in range(14):
        farm.keep(farm.measure())
    tonight = draw(rng, farm.level, Noise())
    history, matrix = farm.history(), farm.matrix()
    series = len(farm.level)

    def whole_night() -> None:
        first = summarise(tonight)
        night = analyse(matrix, history, farm.tonight(first))
        chosen = plan(matrix, night, int(first.measured.sum()))
        verdicts(matrix, night, first.measured > 0, chosen, Turns.none(series))

    no_clock = np.full(tonight.gpu_hz.shape, np.nan)
    blind = Samples(tonight.latency_ns, no_clock, tonight.temp_mc, tonight.throttled)
    print(f"\narrays: {series:,} series, 14 nights and tonight\n")
    timed("samples to verdicts", whole_night)
    timed("of which samples to one number each, clocks shown", lambda: summarise(tonight))
    timed("the same, no clock shown", lambda: summarise(blind))
    season = rng.normal(0, 0.01, (series, 90))
    timed("change-point scan over 90 nights", lambda: segments(season))


def _opened(folder: Path, season: Season) -> History:
    """A history with all nights of a season, made where it is not there yet."""
    history = History(f"sqlite:///{folder}/tilefarm.db", folder / "history")
    shape = season.shape
    if len(history.runs()) < shape.nights:
        began = time.perf_counter()
        for _ in season.nights(history):
            pass
        print(f"(made {shape.nights} files in {time.perf_counter() - began:.0f} s)")
    size = sum(p.stat().st_size for p in history.files.iterdir()) / shape.nights / 2**20
    print(f"{shape.series:,} series, {shape.nights} nights, {size:.1f} MiB a night's file\n")
    return history


def files(folder: Path, shape: Shape) -> None:
    print("\nfiles")
    season = Season(shape)
    history = _opened(folder, season)
    soc_of = {p.device_id: p.chip.soc for p in season.phones}
    until = season.run_id(shape.nights - 1)
    del season
    nights = timed("files to arrays", lambda: load(history, SUITE, until))
    timed("arrays to verdicts", lambda: judge(nights, soc_of, {}))


def year(folder: Path, shape: Shape) -> None:
    print("\nyear")
    season = Season(shape)
    history = _opened(folder, season)
    paths = [history.path(run) for run in history.runs(SUITE)]
    wanted = [
        (season.phones[n % shape.phones].device_id, season.infos[n * 7 % shape.cases].case.case_id)
        for n in range(ASKED)
    ]
    for samples in (False, True):
        each: list[float] = []
        cpu = time.process_time()
        for device_id, case_id in wanted:
            began = time.perf_counter()
            one_series(paths, device_id, case_id, samples=samples)
            each.append(time.perf_counter() - began)
        what = "with raw samples" if samples else "what each night says of it"
        print(
            f"one series of {len(paths)} files, {what}: median of {ASKED} {median(each):.2f} s, "
            f"most {max(each):.2f} s; {(time.process_time() - cpu) / ASKED:.2f} s CPU"
        )
    results = season.results(shape.nights, slower=10)
    run = RunFolder(folder / "runs" / results.run.run_id)
    run.path.mkdir(parents=True, exist_ok=True)
    settings = Settings(out=folder)
    today = datetime.now(UTC).date()
    what = "the end of a night: stored, judged, findings and pages written"
    done = timed(what, lambda: finish_run(run, results, settings, today, Gate()))
    found = done.reports.model.changes
    print(f"{len(found.findings.findings) if found else 0} findings", end="; ")
    pages = run.path
    largest = max(pages.glob("*.html"), key=lambda p: p.stat().st_size)
    print(f"largest page {largest.name} {largest.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    raise SystemExit(main())
