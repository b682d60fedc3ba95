"""canary: a tiny case with a known answer; it must pass before and after a batch for its results to count.

Invocation i sums s, 2s, … Ks with s = 1 + i mod 7, which is s·K(K + 1)/2, and adds the sum of its neighbour
in the workgroup. All of it is exact in fp32: a difference is a sick device and never an error of rounding.
"""

from collections.abc import Mapping

import numpy as np

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Array, Axis, Buffer, Cost, Kernel, Pass, Reference, Tolerance

GROUP = 64
GROUPS = 64
TERMS = 1000
"""K: the largest sum is 7·K(K + 1) = 7,007,000 < 2²⁴."""


class Canary(Kernel):
    role = "canary"
    name = "canary"
    op = "canary"
    params = ()
    axes = (
        Axis("api", ("gles", "vulkan"), default="gles"),
        Axis("precision", ("fp32",), default="fp32"),
    )
    distributions = ("steps",)
    latency_factor = 5.0
    """So many times above or below the expected latency is still well: clocks differ by that."""

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        n = GROUP * GROUPS
        return (Buffer("step", "in", "f32", n), Buffer("sum", "out", "f32", n))

    def passes(self, case: Case) -> tuple[Pass, ...]:
        return (
            Pass(
                template="canary.comp.j2",
                workgroup=(GROUP, 1, 1),
                grid=(GROUPS, 1, 1),
                shared_bytes=4 * GROUP,
                buffers=("step", "sum"),
                context={"terms": TERMS},
            ),
        )

    def data_key(self, case: Case) -> str:
        return "canary"

    def inputs(self, case: Case) -> Mapping[str, Array]:
        return {"step": (1 + np.arange(GROUP * GROUPS) % 7).astype(np.float32)}

    def reference(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Reference]:
        sums = inputs["step"].astype(np.float64).reshape(GROUPS, GROUP) * (TERMS * (TERMS + 1) / 2)
        return {"sum": (sums + np.roll(sums, -1, axis=1)).reshape(-1)}

    def tolerance(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Tolerance]:
        """Whole numbers below 2²⁴."""
        return {"sum": Tolerance(atol=0.0, rtol=0.0, nmse=0.0)}

    def cost(self, case: Case) -> Cost:
        n = GROUP * GROUPS
        return Cost(flops=(2 * TERMS + 1) * n, bytes_min=8 * n, bytes_moved=8 * n)


kernel = Canary()
