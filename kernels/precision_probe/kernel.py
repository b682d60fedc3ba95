"""precision_probe: what a precision that is asked for really delivers; see docs/precision.md.

``asked`` is a hint (highp, mediump, precise), 16-bit arithmetic (fp16), 16-bit buffers (storage16) or
packHalf2x16 (pack_half). ``raw`` brings the bits of every row back for the host to read; ``exact`` holds the
rows that every driver owes, and is checked like any kernel's output.
"""

from collections.abc import Mapping

import numpy as np

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Array, Axis, Buffer, Cost, Kernel, Pass, Reference, Tolerance
from orchestrator.ops.probes_precision import Op, exact_rows, owed, packed, rows

FEATURES = {"fp16": "float16", "storage16": "storage16", "pack_half": "pack_half"}
VULKAN_ONLY = ("precise", "fp16", "storage16")

_GROUP = 64


class PrecisionProbe(Kernel):
    role = "probe"
    name = "precision_probe"
    op = "precision_probe"
    params = ()
    axes = (
        Axis("api", ("gles", "vulkan"), default="gles"),
        Axis("precision", ("asked",), default="asked"),
        Axis("asked", ("highp", "mediump", "precise", "fp16", "storage16", "pack_half"), default="highp"),
    )
    distributions = ("rows",)

    def invalid(self, case: Case) -> str | None:
        asked = asked_of(case)
        if asked in VULKAN_ONLY and case.axes["api"] != "vulkan":
            return f"asked {asked} needs api vulkan"
        return None

    def features(self, case: Case) -> frozenset[str]:
        needed = FEATURES.get(asked_of(case))
        return frozenset({needed} if needed else ())

    def kept(self, case: Case) -> tuple[str, ...]:
        return ("raw",)

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        asked = asked_of(case)
        table = rows(asked)
        return (
            Buffer("rows", "in", "u32", packed(table).size),
            Buffer("raw", "out", "u32", len(table)),
            Buffer("exact", "out", "f32", len(exact_rows(asked))),
        )

    def passes(self, case: Case) -> tuple[Pass, ...]:
        asked = asked_of(case)
        count = len(rows(asked))
        return (
            Pass(
                template="precision_probe.comp.j2",
                workgroup=(_GROUP, 1, 1),
                grid=(-(-count // _GROUP), 1, 1),
                shared_bytes=0,
                buffers=("rows", "raw", "exact"),
                context={
                    "count": count,
                    "exact": len(exact_rows(asked)),
                    "ops": {o.name: int(o) for o in Op},
                },
            ),
        )

    def data_key(self, case: Case) -> str:
        return f"precision_probe {asked_of(case)}"

    def inputs(self, case: Case) -> Mapping[str, Array]:
        return {"rows": packed(rows(asked_of(case)))}

    def reference(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Reference]:
        return {"exact": np.array([owed(row) for row in exact_rows(asked_of(case))], np.float64)}

    def tolerance(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Tolerance]:
        """All results are representable: exact. mediump owes 2⁻¹⁰ relative (ESSL 3.10, 4.5.1), once for each
        operand's conversion and once for the operation."""
        u = 3 * 2.0**-10 if asked_of(case) == "mediump" else 0.0
        return {"exact": Tolerance(atol=0.0, rtol=u, nmse=u * u)}

    def cost(self, case: Case) -> Cost:
        nbytes = sum(b.nbytes for b in self.buffers(case))
        return Cost(flops=len(rows(asked_of(case))), bytes_min=nbytes, bytes_moved=nbytes)


def asked_of(case: Case) -> str:
    return str(case.axes["asked"])


kernel = PrecisionProbe()
