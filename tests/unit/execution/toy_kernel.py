"""A kernel that doubles its input, with everything that a test may want to be wrong as a parameter."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Array, Axis, Buffer, Cost, Kernel, Pass, Reference, Tolerance
from orchestrator.planning.kernel_folder import LoadedKernel

TEMPLATE = """\
#version 310 es
layout(local_size_x = {{ workgroup[0] }}) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer O { float o[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < {{ n }}u) o[i] = 2.0 * x[i]; }
"""


class Doubling(Kernel):
    """o = 2·x. ``changed`` replaces the result of a method; ``calls`` counts how often each was asked."""

    name = "doubling"
    op = "double"
    params = (Axis("n", None),)
    axes = (
        Axis("api", ("gles", "vulkan"), default="gles"),
        Axis("precision", ("fp32", "fp16_storage"), default="fp32"),
        Axis("tile", ("8", "16"), default="8"),
    )
    distributions = ("normal", "zeros", "tiny", "one_nan")

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.changed: dict[str, Callable[[Any], Any]] = {}

    def _answer(self, method: str, value: Any) -> Any:
        self.calls[method] += 1
        return self.changed[method](value) if method in self.changed else value

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        dtype = "f16" if case.axes["precision"] == "fp16_storage" else "f32"
        count = int(case.workload["n"])
        return self._answer("buffers", (Buffer("x", "in", dtype, count), Buffer("o", "out", dtype, count)))

    def passes(self, case: Case) -> tuple[Pass, ...]:
        size = int(case.axes["tile"])
        groups = -(-int(case.workload["n"]) // size)
        steps = (Pass("double.comp.j2", (size, 1, 1), (groups, 1, 1), 4 * size, ("x", "o")),)
        return self._answer("passes", steps)

    def kept(self, case: Case) -> tuple[str, ...]:
        del case
        return self._answer("kept", ())

    def data_key(self, case: Case) -> str:
        return self._answer("data_key", f"{case.workload_id}/{case.axes['precision']}")

    def inputs(self, case: Case) -> Mapping[str, Array]:
        count = int(case.workload["n"])
        values = np.random.default_rng(case.seed).standard_normal(count)
        scale = {"normal": 1.0, "zeros": 0.0, "tiny": 1e-19, "one_nan": 1.0}[case.inputs]
        storage = np.float16 if case.axes["precision"] == "fp16_storage" else np.float32
        x = (values * scale).astype(storage)
        if case.inputs == "one_nan":
            x[1] = np.nan
        return self._answer("inputs", {"x": x})

    def reference(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Reference]:
        del case
        return self._answer("reference", {"o": 2.0 * inputs["x"].astype(np.float64)})

    def tolerance(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Tolerance]:
        del case, inputs
        return self._answer("tolerance", {"o": Tolerance(1e-6, 1e-3, 1e-6)})

    def cost(self, case: Case) -> Cost:
        return self._answer("cost", Cost(int(case.workload["n"]), 64, 128))


def load(folder: Path, kernel: Kernel, template: str = TEMPLATE) -> LoadedKernel:
    home = folder / kernel.name
    home.mkdir(parents=True, exist_ok=True)
    (home / "double.comp.j2").write_text(template, encoding="utf-8")
    return LoadedKernel(kernel, home)


def point(n: int = 5, *, inputs: str = "normal", seed: int = 1, **axes: AxisValue) -> Case:
    chosen: dict[str, AxisValue] = {"api": "gles", "precision": "fp32", "tile": "8"}
    return Case("doubling", "double", {"n": n}, chosen | axes, inputs, seed)
