"""Expand a synthetic suite of 1,000,000 points and print time and peak memory.

    python benchmarks/expand.py [POINTS]

Two blocks of one kernel overlap by almost a half and one exclude is in force, so that duplicate tests and
excludes are paid for. Two passes: time without tracemalloc, then memory with it on a tenth of the points.
"""

import argparse
import resource
import sys
import time
import tracemalloc
from datetime import date

from orchestrator.planning.expand import Tally, expand_blocks
from orchestrator.planning.matrix import Block, Exclude, Space, Suite

_TILES = ("8x8", "16x8", "16x16", "32x16", "32x32", "64x16", "64x32", "128x16", "128x32", "256x16")
_AXES: Space = {
    "api": ("gles", "vulkan"),
    "precision": ("fp32", "fp16_storage", "fp16", "fp16_all", "bf16_storage"),
    "tile": _TILES,
    "layout": ("row", "column"),
    "vector": (1, 4),
    "hint": ("highp", "mediump", "lowp", "relaxed", "precise"),
}
"""2,000 variants."""
_EXCLUDE = Exclude(
    when="tile in (128x32, 256x16) and precision=fp32 and seq>=128",
    reason="benchmark",
    owner="nobody",
    expires=date(2099, 1, 1),
    line=1,
    where="excludes.0",
)


def suite(points: int) -> Suite:
    """``points`` points before excludes, 45 % of them listed by both blocks."""
    lengths = points // 2_000
    seqs = tuple(range(64, 64 + lengths))
    half = seqs[: lengths // 2]

    def block(number: int, values: tuple[int, ...], tiles: tuple[str, ...]) -> Block:
        workload: Space = {"seq": values, "head_dim": (64,), "heads": (8,), "causal": (False,)}
        axes: Space = {**_AXES, "tile": tiles}
        where = f"suites.bench.blocks.{number}"
        return Block(where, number, "attention_flash", "attention", (workload,), axes, ("normal",))

    return Suite("bench", (block(0, half, _TILES[1:]), block(1, seqs, _TILES)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("points", nargs="?", type=int, default=1_000_000)
    points: int = parser.parse_args().points
    tally = Tally()
    started, cpu_started = time.perf_counter(), time.process_time()
    yielded = sum(1 for _ in expand_blocks(suite(points), [_EXCLUDE], tally=tally))
    elapsed, cpu_s = time.perf_counter() - started, time.process_time() - cpu_started
    rss_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    excluded = sum(e.count for e in tally.excluded())

    peaks: list[float] = []
    for size in (points // 10, points // 5):
        tracemalloc.start()
        for _ in expand_blocks(suite(size), [_EXCLUDE]):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1] / 1024)
        tracemalloc.stop()

    print(f"distinct points {yielded + excluded} = {yielded} cases + {excluded} excluded")
    print(f"time {elapsed:.2f} s (processor {cpu_s:.2f} s) = {points / elapsed:,.0f} points/s")
    print(f"peak resident memory {rss_mib:.0f} MiB")
    print(
        f"peak traced allocation {peaks[0]:.0f} KiB at a tenth of the points, {peaks[1]:.0f} KiB at a fifth"
    )
    print(f"python {sys.version.split()[0]}")
    return 0 if yielded + excluded == points else 1


if __name__ == "__main__":
    raise SystemExit(main())
