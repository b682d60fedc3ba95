"""fma: how fast a device multiplies and adds, in each precision and under each hint; the compute roof.

``groups`` workgroups of 64 invocations run 16 independent chains each. A chain adds 1 to a small whole
number, 248 times over, by multiplications and additions that are exact in any format with 10 explicit
mantissa bits, fused or not: the result is exact whatever was delivered, and a loop that ended early shows.
"""

from collections.abc import Mapping

import numpy as np

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Array, Axis, Buffer, Cost, Kernel, Pass, Reference, Tolerance

GROUP = 64
VECTORS = 4
"""Of 4 components: 16 chains."""
UNROLLED = 8
"""Pairs of multiply-adds in the loop's body."""
TRIPS = 31

COEFFICIENTS = (0.5, 2.0, 2.0, -3.0)
"""x = x·0.5 + 2, then x = x·2 - 3: together x + 1."""

PAIRS = UNROLLED * TRIPS
FMAS = 2 * PAIRS * 4 * VECTORS
"""Of one invocation."""


class Fma(Kernel):
    role = "probe"
    name = "fma"
    op = "fma"
    params = (Axis("groups", None),)
    axes = (
        Axis("api", ("gles", "vulkan"), default="gles"),
        Axis("precision", ("fp32", "fp16"), default="fp32"),
        Axis("hint", ("highp", "mediump", "precise"), default="highp"),
    )
    distributions = ("whole",)

    def invalid(self, case: Case) -> str | None:
        precision, hint, api = (case.axes[name] for name in ("precision", "hint", "api"))
        if api != "vulkan" and (precision == "fp16" or hint == "precise"):
            return f"precision {precision} with hint {hint} needs api vulkan"
        if precision == "fp16" and hint != "highp":
            return f"hint {hint} means nothing to 16-bit types"
        return None

    def features(self, case: Case) -> frozenset[str]:
        return frozenset({"float16"} if case.axes["precision"] == "fp16" else ())

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        return (
            Buffer("coefficients", "in", "f32", 4),
            Buffer("start", "in", "f32", GROUP * 4 * VECTORS),
            Buffer("total", "out", "f32", int(case.workload["groups"]) * GROUP),
        )

    def passes(self, case: Case) -> tuple[Pass, ...]:
        return (
            Pass(
                template="fma.comp.j2",
                workgroup=(GROUP, 1, 1),
                grid=(int(case.workload["groups"]), 1, 1),
                shared_bytes=0,
                buffers=("coefficients", "start", "total"),
                context={
                    "vectors": VECTORS,
                    "components": 4 * VECTORS,
                    "unrolled": UNROLLED,
                    "trips": TRIPS,
                },
            ),
        )

    def data_key(self, case: Case) -> str:
        return f"fma {case.workload['groups']}"

    def inputs(self, case: Case) -> Mapping[str, Array]:
        """Whole numbers from -124 on, other ones in each lane: what lanes share could be computed once."""
        lanes = np.arange(GROUP, dtype=np.float32)[:, None]
        chains = np.arange(4 * VECTORS, dtype=np.float32)[None, :]
        return {
            "coefficients": np.array(COEFFICIENTS, np.float32),
            "start": np.ascontiguousarray(-124.0 + (lanes + chains) % 16, np.float32),
        }

    def reference(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Reference]:
        ends = inputs["start"].astype(np.float64).reshape(GROUP, VECTORS, 4) + PAIRS
        weights = np.arange(1, VECTORS + 1)[:, None] * np.arange(1, 5)[None, :]
        return {"total": np.tile((ends * weights).sum(axis=(1, 2)), int(case.workload["groups"]))}

    def tolerance(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Tolerance]:
        """Every intermediate is a multiple of 1/2 below 256: exact with 10 bits."""
        return {"total": Tolerance(atol=0.0, rtol=0.0, nmse=0.0)}

    def cost(self, case: Case) -> Cost:
        nbytes = sum(b.nbytes for b in self.buffers(case))
        invocations = int(case.workload["groups"]) * GROUP
        return Cost(flops=2 * FMAS * invocations, bytes_min=nbytes, bytes_moved=nbytes)


kernel = Fma()
