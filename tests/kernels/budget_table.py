"""Prints docs/numerics.md's table of real errors against budgets: ``python -m tests.kernels.budget_table``.

Every row takes the largest error over both kernels and both layouts (vector 4) on this machine's GPU driver,
and the smallest ratio of allowed to seen over all elements; atol, rtol and NMSE are those of attention_flash.
"""

import sys
import tempfile
from itertools import product
from pathlib import Path

import numpy as np

from orchestrator.domain.case import AxisValue
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.harness import Bench, Outcome, all_kernels, make_case

SHAPES: tuple[dict[str, AxisValue], ...] = (
    {"seq": 128, "head_dim": 64, "heads": 2},
    {"seq": 256, "head_dim": 64, "heads": 2, "causal": True},
    {"seq": 16, "kv_seq": 2048, "head_dim": 64, "heads": 2},
)
COLUMNS = ("precision", "hint", "shape", "max error", "atol", "rtol", "allowed / seen", "NMSE", "allowed")


def main() -> None:
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"|{' --- |' * len(COLUMNS)}")
    drivers: set[str] = set()
    for precision, hint, shape in product(("fp32", "fp16_storage"), ("highp", "mediump"), SHAPES):
        outcomes = [o for loaded in all_kernels().values() for o in _run(loaded, precision, hint, shape)]
        drivers |= {o.driver for o in outcomes}
        print(_row(outcomes))
    print(*sorted(drivers), file=sys.stderr)


def _run(loaded: LoadedKernel, precision: str, hint: str, shape: dict[str, AxisValue]) -> list[Outcome]:
    axes = [
        {"precision": precision, "hint": hint, "layout": layout, "vector": 4, "tile": "16x16"}
        for layout in ("row", "column")
    ]
    cases = [(loaded, make_case(loaded.kernel, shape, axes=a)) for a in axes]
    with tempfile.TemporaryDirectory() as folder:
        return Bench(Path(folder), keep=True).run(cases)


def _row(outcomes: list[Outcome]) -> str:
    first = next(o for o in outcomes if o.case.kernel == "attention_flash")
    seen, ratio = 0.0, np.inf
    for o in outcomes:
        if o.verdict != "pass" or o.tensor is None:
            raise SystemExit(f"{o.case.label}: {o.verdict} {o.reason}")
        error = np.abs(o.tensor - o.reference)
        allowed = o.tolerance.atol + o.tolerance.rtol * np.abs(o.reference)
        seen = max(seen, float(error.max()))
        ratio = min(ratio, 1.0 / float((error / allowed).max()))
    w, a, t = first.case.workload, first.case.axes, first.tolerance
    shape = f"{w['seq']}×{w['kv_seq']}×{w['head_dim']}" + (" causal" if w["causal"] else "")
    nmse = max(o.numerics.nmse for o in outcomes)
    return (
        f"| {a['precision']} | {a['hint']} | {shape} | {seen:.1e} | {t.atol:.1e} "
        f"| {t.rtol:.1e} | {ratio:.0f} | {nmse:.0e} | {t.nmse:.0e} |"
    )


if __name__ == "__main__":
    main()
