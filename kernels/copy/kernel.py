"""copy: dst = src; how many bytes a second a device moves, from sizes that fit caches to its DRAM.

``bytes`` is the size of the source, and of the destination as well. Small ones are copied several times over
within the dispatch, until about ``traffic`` MiB have moved: what is measured is then the memory, or the
cache that holds both buffers, and not the dispatch. A size that gives work to a few units only (16 KiB is
eight workgroups) reads low on a large GPU, so the roofline takes the best size as the cache's bandwidth and
the largest as the memory's.
"""

from collections.abc import Mapping

import numpy as np

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Array, Axis, Buffer, Cost, Kernel, Pass, Reference, Tolerance

GROUP = 128
VECTOR_BYTES = 16
MIB = 2**20
MAX_SWEEPS = 8192
"""With the loop over elements below the 65,535 iterations that llvmpipe grants an invocation."""
MAX_GROUPS = 32768
"""Larger sizes loop: 65,535 workgroups are all that a device must offer."""


class Copy(Kernel):
    role = "probe"
    name = "copy"
    op = "copy"
    params = (Axis("bytes", None), Axis("traffic", None, default=64))
    axes = (
        Axis("api", ("gles", "vulkan"), default="gles"),
        Axis("precision", ("bits",), default="bits"),
    )
    distributions = ("bits",)

    def invalid(self, case: Case) -> str | None:
        nbytes = int(case.workload["bytes"])
        least = GROUP * VECTOR_BYTES
        if nbytes % least:
            return f"bytes {nbytes} is no multiple of {least}"
        return None

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        words = int(case.workload["bytes"]) // 4
        return (
            Buffer("src", "in", "u32", words),
            Buffer("dst", "out", "u32", words),
            Buffer("copied", "out", "u32", groups_of(case)),
        )

    def passes(self, case: Case) -> tuple[Pass, ...]:
        vectors = int(case.workload["bytes"]) // VECTOR_BYTES
        groups = groups_of(case)
        return (
            Pass(
                template="copy.comp.j2",
                workgroup=(GROUP, 1, 1),
                grid=(groups, 1, 1),
                shared_bytes=0,
                buffers=("src", "dst", "copied"),
                constants={
                    "N": vectors,
                    "SWEEPS": sweeps_of(case),
                    "INVOCATIONS": groups * GROUP,
                    "STEP": GROUP,
                },
            ),
        )

    def data_key(self, case: Case) -> str:
        return f"copy {case.workload['bytes']} {case.workload['traffic']} {case.seed}"

    def inputs(self, case: Case) -> Mapping[str, Array]:
        """Random words below the pattern that marks unwritten elements (0x7fc0dead)."""
        words = int(case.workload["bytes"]) // 4
        return {"src": np.random.default_rng(case.seed).integers(0, 0x7FC0_0000, words, dtype=np.uint32)}

    def reference(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Reference]:
        vectors, groups = int(case.workload["bytes"]) // VECTOR_BYTES, groups_of(case)
        left = vectors - GROUP * np.arange(groups, dtype=np.float64)
        copied = sweeps_of(case) * np.ceil(left / (groups * GROUP))
        return {"dst": inputs["src"].astype(np.float64), "copied": copied}

    def tolerance(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Tolerance]:
        """A copy is exact."""
        exact = Tolerance(atol=0.0, rtol=0.0, nmse=0.0)
        return {"dst": exact, "copied": exact}

    def cost(self, case: Case) -> Cost:
        once = 2 * int(case.workload["bytes"])
        return Cost(flops=0, bytes_min=once, bytes_moved=once * sweeps_of(case))


def groups_of(case: Case) -> int:
    return min(int(case.workload["bytes"]) // VECTOR_BYTES // GROUP, MAX_GROUPS)


def sweeps_of(case: Case) -> int:
    """How often a dispatch copies everything."""
    wanted = int(case.workload["traffic"]) * MIB // (2 * int(case.workload["bytes"]))
    return max(1, min(wanted, MAX_SWEEPS))


kernel = Copy()
