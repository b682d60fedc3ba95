"""Runs every kernel on every named input: ``python -m tests.kernels.every_input [--driver NAME]…``.

Prints a table of kernels and drivers: cases, those that fail, those that matrix.yaml expects to fail (with
the reason), and how close the nearest came to its budget. The drivers are the three software ones, and
``gpu-gles`` and ``gpu-vulkan``: this machine's own GPU. Each input runs on its smallest shape, in every
precision that the kernel has on that driver; those that it has not are named.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.expectation import Expectation
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernels
from orchestrator.planning.matrix_reader import load_matrix
from orchestrator.planning.select import compile_selection
from tests.kernels.drivers import DRIVERS, OWN_GPU, ROOT, driver
from tests.kernels.false_alarms import WORKLOADS, Row, absent, precisions_of, variant, whole_words
from tests.kernels.harness import KERNELS, Bench, Outcome, make_case
from tests.kernels.named_inputs import BASE, MASKED_WORKLOADS
from tests.kernels.named_inputs import WORKLOADS as ATTENTION_WORKLOADS

ODD_GEMM: dict[str, AxisValue] = {"m": 33, "n": 45, "k": 521, "batch": 4, "b_batch": 2, "beta": 50}


def cases_of(loaded: LoadedKernel, name: str) -> Iterator[Case]:
    """Every named input of one kernel in every precision, on a driver."""
    kernel = loaded.kernel
    for inputs in kernel.distributions:
        for value in precisions_of(kernel):
            shape = whole_words(kernel, value, _workload(kernel.op, inputs))
            yield make_case(kernel, shape, inputs=inputs, axes=variant(kernel, name, value))


def _workload(op: str, inputs: str) -> Mapping[str, AxisValue]:
    if op == "attention":
        return {**BASE, **(ATTENTION_WORKLOADS | MASKED_WORKLOADS)[inputs]}
    return ODD_GEMM if op == "gemm" else WORKLOADS[op]


def expected(outcome: Outcome, expectations: Sequence[Expectation]) -> str:
    """Why matrix.yaml expects this verdict of this driver; empty: it does not."""
    for e in expectations:
        fits = fnmatchcase(outcome.driver, e.driver) and e.verdict.value == outcome.verdict
        if fits and compile_selection(e.when, source="matrix.yaml")(outcome.case):
            return e.reason
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="every_input")
    parser.add_argument("--driver", action="append", choices=[*DRIVERS, *OWN_GPU], help="default: software")
    names: list[str] = parser.parse_args().driver or list(DRIVERS)
    loaded = load_kernels(KERNELS)
    matrix = load_matrix(
        ROOT / "matrix.yaml", {n: k.kernel for n, k in loaded.items()}, datetime.now(UTC).date()
    )
    failed: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    print(
        f"{'kernel':26} {'driver':12} {'precision':14} {'inputs':>6} {'failed':>7} {'known':>6} "
        f"{'allowed/seen':>13}"
    )
    for name in names:
        for kernel, of in loaded.items():
            if of.kernel.role != "op":
                continue
            every = list(cases_of(of, name))
            rows = absent(driver(name), of.kernel, every)
            known: Counter[str] = Counter()
            with tempfile.TemporaryDirectory() as folder:
                bench = Bench(Path(folder), name, keep=True, repeats=0)
                cases = bench.possible(of, every)
                for outcome in bench.run(cases) if cases else ():
                    precision = str(outcome.case.axes["precision"])
                    rows.setdefault(precision, Row()).add(outcome)
                    if outcome.verdict == "pass":
                        continue
                    if why := expected(outcome, matrix.expectations):
                        known[precision] += 1
                        reasons[why] += 1
                    else:
                        failed[kernel] += 1
                        print(f"FAILED {name}: {outcome.case.label}: {outcome.reason} {outcome.end.log}")
            for precision, row in rows.items():
                wrong = row.alarms - known[precision]
                found = f"{row.cases:6} {wrong:7} {known[precision]:6} {row.closest:13.1f}"
                print(f"{kernel:26} {name:12} {precision:14} {row.absent or found}", flush=True)
    for why, count in reasons.items():
        print(f"known, {count} times: {why}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
