"""The op ``gemm``: C = alpha · op(A) · op(B) + beta · C; what its kernels share.

Shapes and the batch stand in gemm_shape; alpha and beta are percents of small sets, because they are literals
of the shader. With beta 0 nothing of C is read: it is an output there, which starts as NaN like every output,
or (inputs ``nan_in_c``) holds NaN and infinities on purpose.

Axes that the op itself understands:

- ``precision``: fp32; fp16_storage: A, B and C are fp16 in memory, arithmetic is fp32; fp16: products, and
  sums of one chunk of them, are fp16; chunks are added in fp32, and so are alpha and beta.
- ``halves``: how 16-bit values lie in buffers: packed two to a word, or native 16-bit types.
- ``hint``: highp; mediump: factors and products may be fp16, sums are not; precise: no fused multiply-add.
"""

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from orchestrator.domain.case import Case
from orchestrator.domain.digest import stable_id
from orchestrator.domain.kernel import Array, Axis, Buffer, Kernel, Reference, Tolerance
from orchestrator.ops import gemm_inputs
from orchestrator.ops.gemm_budget import BUDGET_VERSION, Arithmetic, gemm_tolerance
from orchestrator.ops.gemm_shape import PARAMS, GemmShape, gemm_reference
from orchestrator.ops.halves import (
    computes_in_half,
    element_bytes,
    is_half,
    is_native,
    storage_dtype,
    tile_features,
)

COMMON_AXES: tuple[Axis, ...] = (
    Axis("api", ("gles", "vulkan"), default="gles"),
    Axis("precision", ("fp32", "fp16_storage", "fp16"), default="fp32"),
    Axis("halves", ("packed", "native"), default="packed"),
    Axis("hint", ("highp", "mediump", "precise"), default="highp"),
)


class GemmKernel(Kernel):
    """What kernels of this op have in common: buffers a, b (in) and o, which is C."""

    op = "gemm"
    params = PARAMS
    distributions = tuple(gemm_inputs.DISTRIBUTIONS)
    tolerance_version = f"gemm-{BUDGET_VERSION}"

    @abstractmethod
    def half_terms(self, case: Case) -> int:
        """Products that one fp16 sum holds; 0 where no sum is fp16."""

    def invalid(self, case: Case) -> str | None:
        shape = GemmShape.of(case)
        limits = gemm_inputs.Range(
            half_storage=is_half(case),
            mediump=case.axes["hint"] == "mediump",
            half_sums=computes_in_half(case),
        )
        return _impossible(case) or shape.invalid() or gemm_inputs.refusal(case.inputs, shape, limits)

    def features(self, case: Case) -> frozenset[str]:
        return tile_features(case)

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        shape, dtype = GemmShape.of(case), storage_dtype(case)
        return (
            Buffer("a", "in", dtype, _count(shape.a_shape)),
            Buffer("b", "in", dtype, _count(shape.b_shape)),
            Buffer("o", "inout" if _holds_c(case) else "out", dtype, _count(shape.c_shape)),
        )

    def data_key(self, case: Case) -> str:
        """Depends on the resolved shape: ``b_batch: batch`` and its number are the same data."""
        s = GemmShape.of(case)
        return stable_id(
            {
                "op": "gemm-1",
                "shape": [s.m, s.n, s.k, s.batch, s.b_batch, s.trans_a, s.trans_b, s.alpha, s.beta],
                "inputs": case.inputs,
                "seed": case.seed,
                "storage": storage_dtype(case),
            }
        )

    def inputs(self, case: Case) -> Mapping[str, Array]:
        a, b, c = gemm_inputs.build(case.inputs, GemmShape.of(case), case.seed)
        storage = np.float16 if is_half(case) else np.float32
        stored = {"a": a.astype(storage), "b": b.astype(storage)}
        return {**stored, "o": c.astype(storage)} if _holds_c(case) else stored

    def reference(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Reference]:
        shape = GemmShape.of(case)
        return {"o": gemm_reference(inputs["a"], inputs["b"], _read_c(inputs, shape), shape)}

    def tolerance(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Tolerance]:
        """Derivation: orchestrator/ops/gemm_budget.py."""
        arithmetic = Arithmetic(
            half_output=is_half(case),
            mediump=case.axes["hint"] == "mediump",
            half_terms=self.half_terms(case) if computes_in_half(case) else 0,
        )
        shape = GemmShape.of(case)
        return {"o": gemm_tolerance(inputs["a"], inputs["b"], _read_c(inputs, shape), shape, arithmetic)}

    def compulsory_bytes(self, case: Case) -> int:
        """A and B read once, C written once, and read once where beta is not 0."""
        shape = GemmShape.of(case)
        crossings = 1 + (shape.beta != 0)
        elements = _count(shape.a_shape) + _count(shape.b_shape) + crossings * _count(shape.c_shape)
        return elements * element_bytes(case)


def _count(sizes: tuple[int, int, int]) -> int:
    return sizes[0] * sizes[1] * sizes[2]


def _holds_c(case: Case) -> bool:
    return GemmShape.of(case).beta != 0 or case.inputs == "nan_in_c"


def _read_c(inputs: Mapping[str, Array], shape: GemmShape) -> Array | None:
    return inputs["o"] if shape.beta else None


def _impossible(case: Case) -> str | None:
    """Why these axes contradict each other."""
    api, hint = case.axes["api"], case.axes["hint"]
    if computes_in_half(case) and hint == "mediump":
        return "hint mediump needs 32-bit arithmetic; precision fp16 has 16 bits already"
    if is_native(case) and not is_half(case):
        return "halves native needs a 16-bit precision: fp16_storage or fp16"
    if api == "vulkan":
        return None
    if computes_in_half(case):
        return "precision fp16 needs api vulkan; on GLES use hint mediump"
    if is_native(case):
        return "halves native needs api vulkan; GLES has no 16-bit types"
    if hint == "precise":
        return "hint precise needs api vulkan; GLSL ES 3.10 lacks the qualifier"
    return None
