"""What a named input distribution of attention is, and what many of them are made by."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.ops.attention_shape import AttentionShape

F64 = NDArray[np.float64]
Tensors = tuple[F64, F64, F64]
Needs = Callable[[AttentionShape], str | None]


@dataclass(frozen=True, slots=True)
class Distribution:
    """One way to fill q, k and v; ``needs`` says why a shape does not fit."""

    about: str
    build: Callable[[AttentionShape, int], Tensors]
    needs: Needs = lambda _: None
    storage_peak: float = 1000.0
    """Largest finite magnitude stored in q, k or v."""
    product_peak: float = 4000.0
    """Largest single product of an element of q with one of k; infinite where inputs are not finite."""
    not_half_products: str = ""
    """Why fp16 products cannot give the right answer on every device, or empty."""
    not_half_sums: str = ""
    """Why fp16 accumulators cannot give the right answer, or empty."""
    mask: Callable[[AttentionShape, int], F64] | None = None
    """[seq, kv_seq] that is added to logits; None: random numbers, a quarter of them -inf."""
    mask_peak: float = 0.0
    """Largest finite magnitude in that mask. It is read and added in fp32, whatever the hint."""


def from_logits(shape: AttentionShape, logits: F64, values: F64) -> Tensors:
    """q, k, v: every query's logits are ``logits``, every element of v[j] is ``values[j]``."""
    q = np.zeros((shape.heads, shape.seq, shape.head_dim))
    k = np.zeros((shape.kv_heads, shape.kv_seq, shape.head_dim))
    v = np.zeros_like(k)
    q[..., 0] = math.sqrt(shape.head_dim)
    k[..., 0] = logits
    v[...] = values[:, None]
    return q, k, v


def needs_exact_key_numbers(shape: AttentionShape) -> str | None:
    return f"kv_seq {shape.kv_seq} > 2048: key numbers are not exact in half" if shape.kv_seq > 2048 else None
