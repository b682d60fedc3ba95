"""Prints docs/numerics.md's table of real errors against budgets: ``python -m tests.kernels.budget_table``.

Every row takes the largest error of attention_naive and attention_flash over both layouts (vector 4), and
over packed and native halves where both are there, on one of the three software drivers, and the smallest
ratio of allowed to seen over all elements; atol, rtol and NMSE are those of attention_flash. The other
kernels have fewer precisions and other axes: ``python -m tests.kernels.every_input`` has a ratio for each.
"""

import sys
import tempfile
from itertools import product
from pathlib import Path

from orchestrator.domain.case import AxisValue
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.conftest import NAMES
from tests.kernels.drivers import DRIVERS, driver
from tests.kernels.harness import Bench, Outcome, all_kernels, error_beside_budget, make_case

SHAPES: tuple[dict[str, AxisValue], ...] = (
    {"seq": 128, "head_dim": 64, "heads": 2},
    {"seq": 256, "head_dim": 64, "heads": 2, "causal": True},
    {"seq": 16, "kv_seq": 2048, "head_dim": 64, "heads": 2},
)
WAYS = (
    *product(("fp32", "fp16_storage"), ("highp", "mediump")),
    ("fp32", "precise"),
    ("fp16", "highp"),
    ("fp16_all", "highp"),
)
COLUMNS = (
    "precision", "hint", "shape", "driver", "max error", "atol", "rtol", "allowed / seen", "NMSE", "allowed",
)  # fmt: skip


def main() -> None:
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"|{' --- |' * len(COLUMNS)}")
    drivers: set[str] = set()
    for (precision, hint), shape, name in product(WAYS, SHAPES, DRIVERS):
        outcomes = [o for kernel in NAMES for o in _run(name, all_kernels()[kernel], precision, hint, shape)]
        drivers |= {f"{name}: {o.driver}" for o in outcomes}
        if outcomes:
            print(_row(name, outcomes), flush=True)
    print(*sorted(drivers), file=sys.stderr)


def _run(
    name: str, loaded: LoadedKernel, precision: str, hint: str, shape: dict[str, AxisValue]
) -> list[Outcome]:
    fixed = {"api": driver(name).api, "precision": precision, "hint": hint, "vector": 4, "tile": "16x16"}
    cases = [
        make_case(loaded.kernel, shape, axes={**fixed, "layout": layout, "halves": halves})
        for layout, halves in (("row", "packed"), ("column", "packed"), ("row", "native"))
    ]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), name, keep=True)
        return bench.run(bench.possible(loaded, cases))


def _row(name: str, outcomes: list[Outcome]) -> str:
    first = next(o for o in outcomes if o.case.kernel == "attention_flash")
    seen, ratio = error_beside_budget(outcomes)
    w, a, t = first.case.workload, first.case.axes, first.tolerance
    shape = f"{w['seq']}×{w['kv_seq']}×{w['head_dim']}" + (" causal" if w["causal"] else "")
    nmse = max(o.numerics.nmse for o in outcomes)
    return (
        f"| {a['precision']} | {a['hint']} | {shape} | {name} | {seen:.1e} | {t.atol:.1e} "
        f"| {t.rtol:.1e} | {ratio:.0f} | {nmse:.0e} | {t.nmse:.0e} |"
    )


if __name__ == "__main__":
    main()
