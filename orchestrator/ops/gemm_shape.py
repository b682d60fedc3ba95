"""Shape of one gemm workload, and its reference: C = alpha · op(A) · op(B) + beta · C in float64.

Matrices are in C order: A [batch, m, k], or [batch, k, m] with trans_a; B [b_batch, k, n], or [b_batch, n, k]
with trans_b; C [batch, m, n]. Product i of the batch takes B number i // (batch // b_batch).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Array, Axis

ALPHAS = (100, 150, 50, 33, -50)
"""Percent. 100 multiplies by nothing; 33 is no fp32 number."""
BETAS = (0, 100, 50, 33, -100)
"""Percent. 0 reads no C, as BLAS has it: what lies there may be NaN."""

PARAMS: tuple[Axis, ...] = (
    Axis("m", None),
    Axis("n", None),
    Axis("k", None),
    Axis("batch", None, default=1),
    Axis("b_batch", None, default="batch"),
    Axis("trans_a", (False, True), default=False),
    Axis("trans_b", (False, True), default=False),
    Axis("alpha", ALPHAS, default=100),
    Axis("beta", BETAS, default=0),
)
"""Workload parameters of the op."""

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GemmShape:
    m: int
    n: int
    k: int
    batch: int
    b_batch: int
    trans_a: bool
    trans_b: bool
    alpha: int
    beta: int

    @classmethod
    def of(cls, case: Case) -> "GemmShape":
        w = case.workload
        batch, shared = int(w.get("batch", 1)), w.get("b_batch", "batch")
        return cls(
            m=int(w["m"]),
            n=int(w["n"]),
            k=int(w["k"]),
            batch=batch,
            b_batch=batch if shared == "batch" else int(shared),
            trans_a=bool(w.get("trans_a", False)),
            trans_b=bool(w.get("trans_b", False)),
            alpha=int(w.get("alpha", 100)),
            beta=int(w.get("beta", 0)),
        )

    def invalid(self) -> str | None:
        if self.batch % self.b_batch:
            return f"b_batch {self.b_batch} does not divide batch {self.batch}"
        return None

    @property
    def group(self) -> int:
        """Products of the batch that share one B."""
        return self.batch // self.b_batch

    @property
    def a_shape(self) -> tuple[int, int, int]:
        """As stored."""
        return (self.batch, self.k, self.m) if self.trans_a else (self.batch, self.m, self.k)

    @property
    def b_shape(self) -> tuple[int, int, int]:
        return (self.b_batch, self.n, self.k) if self.trans_b else (self.b_batch, self.k, self.n)

    @property
    def c_shape(self) -> tuple[int, int, int]:
        return self.batch, self.m, self.n

    def a_of(self, a: Array, i: int) -> Array:
        """op(A) of product ``i``, [m, k]."""
        return a[i].T if self.trans_a else a[i]

    def b_of(self, b: Array, i: int) -> Array:
        """op(B) of product ``i``, [k, n]."""
        one = b[i // self.group]
        return one.T if self.trans_b else one


def gemm_reference(a: Array, b: Array, c: Array | None, shape: GemmShape) -> F64:
    """The op in float64 on matrices as stored; ``c`` is what C held before, None where beta is 0.

    Returns:
        [batch, m, n]; NaN where the output must not be a number, an infinity where that.
    """
    out: F64 = np.empty(shape.c_shape)
    with np.errstate(invalid="ignore", over="ignore"):
        for i in range(shape.batch):
            left, right = shape.a_of(a, i).astype(np.float64), shape.b_of(b, i).astype(np.float64)
            out[i] = np.matmul(left, right) * (shape.alpha / 100)
        if c is not None:
            out += c.astype(np.float64) * (shape.beta / 100)
    return out
