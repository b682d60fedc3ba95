"""Naive and flash attention on this machine's software drivers in turns: how many times as fast flash is.

    python -m benchmarks.software_drivers [--rounds N] [--repeats N] [--seq N] [--head-dim N] [--only TEXT]
        [DRIVER ...]

All variants of a driver run in one process of the runner, one after another: first a round that compiles and
is not counted, then ``--rounds`` more, so that what disturbs one variant disturbs its neighbours. Two times
of a dispatch, medians both: by the wall clock, and processor time over the number of processors, which is
what it would take if nothing else ran and it kept all of them busy. While other work runs the second is to
be believed; on an idle machine the first, which knows processors that wait for the last workgroups.
"""

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from orchestrator.domain.case import AxisValue, Case
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.drivers import DRIVERS, runner_path
from tests.kernels.harness import Bench, all_kernels, make_case
from workers.job_folder import job_text

UNTIMED = 2
"""Dispatches that are checked and replayed."""
NAIVE = "attention_naive"
LANES = "attention_flash_lanes"

SUBGROUPS = {"lavapipe": 8, "swiftshader": 4}
"""Invocations in a subgroup of the drivers that have them."""

VARIANTS: tuple[tuple[str, dict[str, AxisValue]], ...] = (
    (NAIVE, {"tile": "16x16", "vector": 4}),
    (NAIVE, {"tile": "8x8", "vector": 4}),
    ("attention_flash", {"tile": "128x16", "rows": 4}),
    ("attention_flash_blocked", {"tile": "64x64", "rows": 4, "chunk": 16, "unroll": "short"}),
    (LANES, {"tile": "32x1", "rows": 4}),
    (LANES, {"tile": "48x1", "rows": 6}),
)
"""Naive at its best, the best of those made for GPUs, and the one made for such drivers."""

SHUFFLED: tuple[dict[str, AxisValue], ...] = (
    {"tile": "32x1", "rows": 4},
    {"tile": "32x2", "rows": 4},
    {"tile": "32x4", "rows": 4},
)
"""The last one with words that a subgroup shares."""


@dataclass
class Times:
    """Of a dispatch."""

    wall_ms: list[float] = field(default_factory=list[float])
    busy_ms: list[float] = field(default_factory=list[float])
    first_s: float = 0.0
    """With compilation."""


class Meter(Bench):
    """A bench whose cases take turns and that reads the processor time of each; without validation."""

    def measure(self, cases: Sequence[tuple[LoadedKernel, Case]], rounds: int) -> list[Times]:
        """Raises SystemExit: a case did not finish."""
        times = [Times() for _ in cases]
        for record, busy_ns in self._records(cases, rounds):
            turn, at = (int(part) for part in record["case"][1:].split("c"))
            if record["status"] != "ok":
                raise SystemExit(f"{cases[at][1].label}: {record}")
            timing, of = record["timing"], times[at]
            if turn == 0:
                of.first_s = (sum(timing["compile_ns"]) + timing["first_ns"]) / 1e9
            else:
                dispatches = self.repeats + UNTIMED + timing["slope_n"]
                of.busy_ms.append(busy_ns / 1e6 / dispatches / (os.cpu_count() or 1))
                of.wall_ms += [ns / 1e6 for ns in timing["wall_ns"]]
        return times

    def _records(
        self, cases: Sequence[tuple[LoadedKernel, Case]], rounds: int
    ) -> Iterator[tuple[dict[str, Any], int]]:
        """End records, and the processor time since the start of their case."""
        blobs = self.folder / "blobs"
        blobs.mkdir()
        turns = [(turn, at) for turn in range(rounds + 1) for at in range(len(cases))]
        jobs = [self._job(blobs, *cases[at], f"r{turn}c{at}") for turn, at in turns]
        needed = {f for loaded, case in cases for f in loaded.kernel.features(case)}
        text = job_text(
            "bench", jobs, str(blobs), enable=sorted(needed) if self.driver.api == "vulkan" else ()
        )
        (self.folder / "job.txt").write_text(text, encoding="ascii")
        environment = {k: v for k, v in self.driver.environment.items() if k != "TILEFARM_VALIDATE"}
        command = [str(runner_path()), "run", str(self.folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as runner:
            before = 0
            for line in runner.stdout or ():
                record = json.loads(line)
                if record["type"] == "start":
                    before = _processor_ns(runner.pid)
                elif record["type"] == "end":
                    yield record, _processor_ns(runner.pid) - before


def _processor_ns(runner: int) -> int:
    """Of the runner's child, which runs the cases: all its threads so far."""
    children = Path(f"/proc/{runner}/task/{runner}/children").read_text(encoding="ascii").split()
    threads = [thread for child in children for thread in Path(f"/proc/{child}/task").iterdir()]
    return sum(int((thread / "schedstat").read_text(encoding="ascii").split()[0]) for thread in threads)


def _run(name: str, shape: dict[str, AxisValue], rounds: int, repeats: int, only: str) -> None:
    loaded = all_kernels()
    shuffled = [(LANES, {**axes, "subgroup": SUBGROUPS[name]}) for axes in SHUFFLED if name in SUBGROUPS]
    with tempfile.TemporaryDirectory() as folder:
        meter = Meter(Path(folder), name, repeats=repeats)
        cases = [
            (loaded[kernel], make_case(loaded[kernel].kernel, shape, axes={"api": meter.driver.api, **axes}))
            for kernel, axes in (*VARIANTS, *shuffled)
        ]
        cases = [(kernel, case) for kernel, case in cases if only in _variant(case)]
        times = meter.measure(cases, rounds)
    walls = [median(t.wall_ms) for t in times]
    busy = [median(t.busy_ms) for t in times]
    naive = [n for n, (kernel, _) in enumerate(cases) if kernel.kernel.name == NAIVE]
    flash = [n for n in range(len(cases)) if n not in naive]
    print(f"{name}: {' '.join(f'{k}={v}' for k, v in shape.items())}, load {os.getloadavg()[0]:.1f}")
    print("  wall ms  processor ms  first s  variant")
    for n, (_, case) in enumerate(cases):
        print(f"  {walls[n]:7.2f}  {busy[n]:12.2f}  {times[n].first_s:7.1f}  {_variant(case)}")
    for of, what in ((walls, "wall"), (busy, "processor")) if naive and flash else ():
        best, base = min(of[n] for n in flash), min(of[n] for n in naive)
        print(f"  best naive / best flash, {what}: {base:.2f} / {best:.2f} = {base / best:.1f}")


def _variant(case: Case) -> str:
    told = [f"{k}={v}" for k, v in case.axes.items() if (k, v) not in _TOLD_BY_ALL]
    return " ".join((case.kernel, *told))


_TOLD_BY_ALL = (
    ("api", "gles"),
    ("api", "vulkan"),
    ("precision", "fp32"),
    ("halves", "packed"),
    ("hint", "highp"),
    ("pad", 0),
    ("layout", "row"),
    ("layout", "column"),
    ("subgroup", 0),
)
"""Axes that say nothing here."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("drivers", nargs="*", default=[*DRIVERS], metavar="DRIVER")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=10, help="timed dispatches of a variant in a round")
    parser.add_argument("--seq", type=int, default=512)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--only", default="", help="variants that hold this text, as they are printed")
    given = parser.parse_args()
    for name in given.drivers:
        shape: dict[str, AxisValue] = {"seq": given.seq, "head_dim": given.head_dim, "heads": 1}
        _run(name, shape, given.rounds, given.repeats, given.only)


if __name__ == "__main__":
    main()
