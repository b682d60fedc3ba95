"""Prints docs/gemm.md's table of errors beside budgets: ``python -m tests.kernels.gemm_budget_table``.

Every row takes the largest error over packed and native halves on one of this machine's drivers, and the
smallest ratio of allowed to seen over all elements.
"""

import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from orchestrator.domain.case import AxisValue, Case
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernel
from tests.kernels.drivers import DRIVERS
from tests.kernels.harness import KERNELS, Bench, Outcome, error_beside_budget, make_case

COLUMNS = (
    "precision",
    "hint",
    "k",
    "inputs",
    "driver",
    "max error",
    "atol",
    "rtol",
    "allowed / seen",
    "NMSE",
)
WAYS = (("fp32", "highp"), ("fp32", "mediump"), ("fp16_storage", "highp"), ("fp16", "highp"))
SIZES = (("normal", 64), ("normal", 2048), ("cancelling", 2048))
TILE: dict[str, AxisValue] = {"tile": "32x32", "block": "8x8", "chunk": 16, "unroll": "short"}


def main() -> None:
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"|{' --- |' * len(COLUMNS)}")
    loaded = load_kernel(KERNELS / "sgemm")
    for (precision, hint), (inputs, k), driver in product(WAYS, SIZES, DRIVERS):
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(Path(folder), driver, keep=True)
            cases = list(_cases(loaded, precision, hint, inputs, k, bench.driver.api))
            if possible := bench.possible(loaded, cases):
                print(_row(bench.run(possible), driver))


def _cases(loaded: LoadedKernel, precision: str, hint: str, inputs: str, k: int, api: str) -> Iterator[Case]:
    for halves in ("packed", "native"):
        axes = {"api": api, "precision": precision, "hint": hint, "halves": halves, **TILE}
        yield make_case(loaded.kernel, {"m": 96, "n": 96, "k": k}, inputs=inputs, axes=axes)


def _row(outcomes: list[Outcome], driver: str) -> str:
    seen, ratio = error_beside_budget(outcomes)
    case, t = outcomes[0].case, outcomes[0].tolerance
    nmse = max(o.numerics.nmse or 0.0 for o in outcomes)
    return (
        f"| {case.axes['precision']} | {case.axes['hint']} | {case.workload['k']} | {case.inputs} | {driver} "
        f"| {seen:.1e} | {t.atol:.1e} | {t.rtol:.1e} | {ratio:.1f} | {nmse:.0e} of {t.nmse:.0e} |"
    )


if __name__ == "__main__":
    main()
