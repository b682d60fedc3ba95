"""Seeded check of the goals of ../shared/statistics.md; the tables of docs/measurements/detection.txt.

    python -m benchmarks.detection [--seed N] [--farms N] [--nights N] [--rows N] [--only TEXT] [--jobs N]
    python -m benchmarks.detection --smallest

``--farms``: farms a scenario (four times as many with swapped phones), each with 12 nights (3) of six changed
cases in 1,000. ``--nights``: nights without change a scenario, 1,000 tests each (twice as many in the first
one), and as many of farms with 30 and 100 cases. ``--rows``: comparisons in turns an effect, five times as
many without one. Every share with its 95 % interval (Clopper and Pearson).
"""

import argparse
from concurrent.futures import ProcessPoolExecutor

from benchmarks.simulation.goals import (
    SCENARIOS,
    Found,
    Quiet,
    Scenario,
    detection,
    in_turns,
    quiet,
    smallest,
)
from benchmarks.simulation.noise import Noise
from benchmarks.simulation.tables import goals, in_turns_table, of_changes, of_quiet_nights, of_smallest

SMALL_FARMS = (30, 100)
"""Cases a SoC."""
TURNS = (
    ("clocks shown", Noise()),
    ("AR(1) rho 0.6", Noise(rho=0.6)),
    ("no clock shown", Noise(clocks=False)),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--farms", type=int, default=30)
    parser.add_argument("--nights", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--only", default="", help="scenarios whose name holds this text")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--smallest", action="store_true", help="only the smallest effects that are found")
    asked = parser.parse_args()
    seed: int = asked.seed
    chosen = [s for s in SCENARIOS if asked.only in s.name]
    if asked.smallest:
        _print(of_smallest([(s, smallest(s, seed)) for s in chosen]))
        return 0
    with ProcessPoolExecutor(max_workers=asked.jobs) as pool:
        changed = [pool.submit(detection, s, asked.farms * (4 if s.swaps else 1), seed) for s in chosen]
        nights = [asked.nights * (2 if s is SCENARIOS[0] else 1) for s in chosen]
        unchanged = [pool.submit(quiet, s, n, seed) for s, n in zip(chosen, nights, strict=True)]
        small = {
            cases: [pool.submit(quiet, s, asked.nights, seed, cases) for s in chosen if s.asked]
            for cases in SMALL_FARMS
        }
        found: list[tuple[Scenario, Found]] = [(s, f.result()) for s, f in zip(chosen, changed, strict=True)]
        _print(of_changes(found))
        still: list[tuple[Scenario, Quiet]] = [
            (s, f.result()) for s, f in zip(chosen, unchanged, strict=True)
        ]
        _print(of_quiet_nights(still, "1,000 cases a SoC"))
        for cases, jobs in small.items():
            named = zip([s for s in chosen if s.asked], jobs, strict=True)
            _print(of_quiet_nights([(s, job.result()) for s, job in named], f"{cases} cases a SoC"))
        rows: int = asked.rows
        for name, noise in () if asked.only else TURNS:
            effects = {0.0: 5 * rows} | dict.fromkeys((0.01, 0.02, 0.03, 0.05), rows)
            jobs = [pool.submit(in_turns, noise, effect, n, seed) for effect, n in effects.items()]
            _print(in_turns_table(name, [job.result() for job in jobs]))
    _print(goals(found, still))
    return 0


def _print(lines: list[str]) -> None:
    print("\n".join([*lines, ""]), flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
