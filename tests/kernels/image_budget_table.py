"""Prints docs/kernels.md's table of errors beside budgets: ``python -m tests.kernels.image_budget_table``.

Every row takes the largest error over the layouts of one kernel on one of this machine's drivers, and the
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

COLUMNS = ("kernel", "precision", "inputs", "driver", "max error", "atol", "rtol", "allowed / seen")
IMAGE: dict[str, AxisValue] = {"width": 128, "height": 64, "radius": 2}
NUMBERS: dict[str, AxisValue] = {"n": 4099, "percent": 33}
PRECISIONS = ("fp32", "fp16_storage", "fp16")


def main() -> None:
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"|{' --- |' * len(COLUMNS)}")
    for name in ("blur_tonemap_two_pass", "blur_tonemap_fused", "scale"):
        loaded = load_kernel(KERNELS / name)
        inputs = ("normal",) if name == "scale" else ("normal", "dark")
        for precision, distribution, driver in product(PRECISIONS, inputs, DRIVERS):
            with tempfile.TemporaryDirectory() as folder:
                bench = Bench(Path(folder), driver, keep=True)
                cases = list(_cases(loaded, precision, distribution, bench.driver.api))
                if possible := bench.possible(loaded, cases):
                    print(_row(bench.run(possible), driver))


def _cases(loaded: LoadedKernel, precision: str, inputs: str, api: str) -> Iterator[Case]:
    scale = loaded.kernel.name == "scale"
    layouts: tuple[dict[str, AxisValue], ...] = (
        ({"vector": 1}, {"vector": 4})
        if scale
        else ({"source": "global", "rows": 4}, {"source": "shared", "rows": 1})
    )
    for halves, layout in product(("packed", "native"), layouts):
        axes = {"api": api, "precision": precision, "halves": halves, **layout}
        yield make_case(loaded.kernel, NUMBERS if scale else IMAGE, inputs=inputs, axes=axes)


def _row(outcomes: list[Outcome], driver: str) -> str:
    seen, ratio = error_beside_budget(outcomes)
    case, t = outcomes[0].case, outcomes[0].tolerance
    return (
        f"| {case.kernel} | {case.axes['precision']} | {case.inputs} | {driver} | {seen:.1e} "
        f"| {t.atol:.1e} | {t.rtol:.1e} | {ratio:.1f} |"
    )


if __name__ == "__main__":
    main()
