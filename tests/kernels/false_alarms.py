"""Runs the true kernels on many seeds: ``python -m tests.kernels.false_alarms --seeds 1000`` prints a table.

A budget that is too narrow shows here as an alarm about a kernel that is right, one that is too wide as a
smallest ratio of allowed to seen far above 1. Every kernel that a software driver can run takes part, in
every precision that it has there, and the table names those that it has not; shapes are small and ragged, so
that a job of hundreds of cases is quick. Other axes keep their defaults: highp, packed halves, GLSL.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Kernel
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernels
from tests.kernels.drivers import DRIVERS, OWN_GPU, Driver, driver
from tests.kernels.harness import KERNELS, Bench, Outcome, make_case

CASES_A_JOB = 250
MATRIX_UNITS = "attention_flash_matrix"
"""No software driver has them."""

ATTENTION: dict[str, AxisValue] = {"seq": 33, "kv_seq": 37, "head_dim": 20, "heads": 2, "causal": True}
IMAGE: dict[str, AxisValue] = {"width": 21, "height": 13, "radius": 2}
WORKLOADS: dict[str, dict[str, AxisValue]] = {
    "attention": ATTENTION,
    "blur_tonemap": IMAGE,
    "gemm": {"m": 33, "n": 21, "k": 70},
    "scale": {"n": 1001, "percent": 150},
}
"""By op."""
QUICK: dict[str, dict[str, AxisValue]] = {
    "attention_flash": {"tile": "16x16"},
    "attention_flash_blocked": {"tile": "16x16", "unroll": "short"},
    "attention_flash_matrix": {"tile": "16x16"},
    "attention_naive": {"tile": "8x8"},
}
"""Axes of kernels whose defaults compile slowly on a processor."""
PAIRS_OF_HALVES = "attention_flash_blocked"
"""In fp16 it keeps weights within a subgroup and reads words of eight halves."""
SUBGROUPS = {"lavapipe": 8, "swiftshader": 4, "gpu-vulkan": 32}
"""Sizes that the drivers have; the own GPU's is NVIDIA's."""


@dataclass(slots=True)
class Row:
    """What became of a kernel in one precision on one driver."""

    cases: int = 0
    alarms: int = 0
    closest: float = np.inf
    """Smallest ratio of allowed to seen over all elements of all cases."""
    absent: str = ""
    """Why there is no case."""

    def add(self, outcome: Outcome) -> None:
        self.cases += 1
        self.alarms += outcome.verdict != "pass"
        if outcome.verdict == "pass" and outcome.tensor is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = outcome.allowed / np.abs(outcome.tensor - outcome.reference)
            self.closest = min(self.closest, float(np.nanmin(ratios)))


def kernels() -> dict[str, LoadedKernel]:
    found = load_kernels(KERNELS)
    return {n: k for n, k in found.items() if k.kernel.role == "op" and n != MATRIX_UNITS}


def cases_of(
    loaded: LoadedKernel, name: str, seeds: range, precisions: Sequence[AxisValue] | None = None
) -> Iterator[Case]:
    """Of one kernel on one driver: every precision that it has, or these, for every seed.

    Raises:
        KeyError: WORKLOADS has none for the kernel's op.
    """
    kernel = loaded.kernel
    for value in precisions or precisions_of(kernel):
        shape = whole_words(kernel, value, WORKLOADS[kernel.op])
        for seed in seeds:
            yield make_case(kernel, shape, seed=seed, axes=variant(kernel, name, value))


def precisions_of(kernel: Kernel) -> tuple[AxisValue, ...]:
    (precision,) = [a for a in kernel.axes if a.name == "precision"]
    return precision.values or ()


def variant(kernel: Kernel, name: str, precision: AxisValue) -> dict[str, AxisValue]:
    """Axes by which a precision of a kernel exists on a driver, if any do."""
    axes = {"api": driver(name).api, **QUICK.get(kernel.name, {}), "precision": precision}
    if kernel.name == PAIRS_OF_HALVES and precision == "fp16" and name in SUBGROUPS:
        size = SUBGROUPS[name]
        axes |= {"tile": "32x32" if size >= 8 else "16x16", "chunk": 8, "subgroup": size}
    return axes


def whole_words(
    kernel: Kernel, precision: AxisValue, shape: Mapping[str, AxisValue]
) -> Mapping[str, AxisValue]:
    """The shape, or where the precision takes no other one its head_dim in whole words."""
    if kernel.name == PAIRS_OF_HALVES and precision == "fp16":
        return {**shape, "head_dim": -(-int(shape["head_dim"]) // 8) * 8}
    return shape


def absent(on: Driver, kernel: Kernel, cases: Iterable[Case]) -> dict[str, Row]:
    """Precisions in which the driver refuses every case; with its reason for the first one."""
    why: dict[str, str | None] = {}
    for case in cases:
        precision, reason = str(case.axes["precision"]), on.refuses(kernel, case)
        why[precision] = None if reason is None else why.setdefault(precision, reason)
    return {precision: Row(absent=reason) for precision, reason in why.items() if reason is not None}


def run(
    name: str, loaded: LoadedKernel, seeds: range, precisions: Sequence[AxisValue] | None = None
) -> dict[str, Row]:
    """Precision → row, also of those that do not exist on the driver."""
    every = list(cases_of(loaded, name, seeds, precisions))
    rows = absent(driver(name), loaded.kernel, every)
    with tempfile.TemporaryDirectory() as folder:
        cases = Bench(Path(folder), name).possible(loaded, every)
        for first in range(0, len(cases), CASES_A_JOB):
            with tempfile.TemporaryDirectory(dir=folder) as job:
                for outcome in Bench(Path(job), name, keep=True, repeats=0).run(
                    cases[first : first + CASES_A_JOB]
                ):
                    rows.setdefault(str(outcome.case.axes["precision"]), Row()).add(outcome)
                    if outcome.verdict != "pass":
                        print(
                            f"ALARM {name}: {outcome.case.label} seed={outcome.case.seed}: {outcome.reason}"
                        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="false_alarms")
    parser.add_argument("--seeds", type=int, default=1000, help="of each kernel, precision and driver")
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--driver", action="append", choices=[*DRIVERS, *OWN_GPU], help="default: software")
    given = parser.parse_args()
    seeds = range(int(given.first), int(given.first) + int(given.seeds))
    total, alarms, began = 0, 0, time.monotonic()
    print(f"{'kernel':26} {'driver':12} {'precision':14} {'cases':>6} {'alarms':>7} {'allowed/seen':>13}")
    for name in given.driver or DRIVERS:
        for kernel, loaded in kernels().items():
            for precision, row in run(name, loaded, seeds).items():
                total, alarms = total + row.cases, alarms + row.alarms
                found = f"{row.cases:6} {row.alarms:7} {row.closest:13.1f}"
                print(f"{kernel:26} {name:12} {precision:14} {row.absent or found}", flush=True)
    print(f"{total} cases, {alarms} false alarms, {time.monotonic() - began:.0f} s")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
