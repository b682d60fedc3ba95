"""Seeded check of the goals of ../shared/statistics.md; the table of docs/measurements/verdicts.txt.

    python -m benchmarks.verdicts [--seed N] [--farms N] [--nights N] [--rows N] [--only TEXT]

``--farms``: farms a scenario (twice as many with swapped phones), each with 12 nights (3) of six changed
cases in 1,000. ``--nights``: nights without
change in the first scenario, 1,000 tests each; a tenth of it in the others. ``--rows``: comparisons in turns
an effect, five times as many without one. Every share with its 95 % interval (Clopper and Pearson).
"""

import argparse
from concurrent.futures import ProcessPoolExecutor

from benchmarks.verdicts.cost import costs
from benchmarks.verdicts.goals import (
    SCENARIOS,
    Found,
    InTurns,
    Proportion,
    Quiet,
    Scenario,
    detection,
    in_turns,
    quiet,
)
from benchmarks.verdicts.noise import Noise

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
    asked = parser.parse_args()
    seed: int = asked.seed
    chosen = [s for s in SCENARIOS if asked.only in s.name]
    nights = [asked.nights if s is SCENARIOS[0] else max(asked.nights // 10, 1) for s in chosen]
    with ProcessPoolExecutor(max_workers=2) as pool:
        changed = [pool.submit(detection, s, asked.farms * (2 if s.swaps else 1), seed) for s in chosen]
        unchanged = [pool.submit(quiet, s, n, seed) for s, n in zip(chosen, nights, strict=True)]
        _print_found([(s, f.result()) for s, f in zip(chosen, changed, strict=True)])
        _print_quiet([(s, f.result()) for s, f in zip(chosen, unchanged, strict=True)])
        if not asked.only:
            for name, noise in TURNS:
                rows_each: int = asked.rows
                effects = {0.0: 5 * rows_each} | dict.fromkeys((0.01, 0.02, 0.03, 0.05), rows_each)
                jobs = [pool.submit(in_turns, noise, effect, rows, seed) for effect, rows in effects.items()]
                _print_turns(name, [job.result() for job in jobs])
            _print_costs(pool)
    return 0


def _print_found(results: list[tuple[Scenario, Found]]) -> None:
    print("found and confirmed in the same night\n")
    heads = " ".join(f"{head:24}" for head in ("5 % on a SoC", "3 % on a SoC", "5 % on one phone"))
    print(f"{'scenario':26} {heads} {'false':>14} {'cost':>6}")
    for scenario, said in results:
        shares = " ".join(f"{_share(p):24}" for p in (said.five, said.three, said.one_phone))
        print(
            f"{scenario.name:26} {shares} {said.false.hits:>5} of {said.false.of:<5} {said.cost:6.2%}",
            flush=True,
        )


def _print_quiet(results: list[tuple[Scenario, Quiet]]) -> None:
    print("\nnights without change\n")
    print(
        f"{'scenario':26} {'tests':>9} {'found':>6} {'p < 0.0005':26} {'nights with an alarm':26} {'cost':>6}"
    )
    for scenario, said in results:
        print(
            f"{scenario.name:26} {said.screened.of:>9} {said.screened.hits:>6} {_share(said.below, 4):26} "
            f"{said.alarms.hits} of {said.alarms.of} {_share(said.alarms):18} {said.cost:6.2%}",
            flush=True,
        )


def _print_turns(name: str, results: list[InTurns]) -> None:
    print(f"\ntwo codes in turns, {name}\n")
    print(f"{'effect':>7} {'different':28} {'same':24} {'samples':>8}")
    for said in results:
        print(
            f"{said.effect:7.0%} {_share(said.different, 3):28} {_share(said.same):24} {said.samples:8.0f}",
            flush=True,
        )


def _print_costs(pool: ProcessPoolExecutor) -> None:
    print("\ntime and memory\n")
    for cost in pool.submit(costs).result():
        print(
            f"{cost.what:62} {cost.wall_s:6.1f} s wall {cost.cpu_s:6.1f} s CPU {cost.peak_mib:7.0f} MiB peak"
        )


def _share(found: Proportion, digits: int = 1) -> str:
    if found.of == 0:
        return "-"
    low, high = found.interval
    return f"{found.share:.{digits}%} ({low:.{digits}%} to {high:.{digits}%})"


if __name__ == "__main__":
    raise SystemExit(main())
