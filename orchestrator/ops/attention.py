"""The op ``attention``: reference, inputs, buffers and everything else that its kernels share.

A kernel subclasses :class:`AttentionKernel` and adds its axes, passes and modelled traffic. Axes that the
op itself understands:

- ``precision``: fp32; fp16_storage: q, k, v and o are fp16 in memory, arithmetic is fp32; fp16: products are
  rounded to fp16, sums of them are fp32, but for runs that a kernel names (half_run); fp16_all:
  the sums q·k and p·v are fp16, too. Logits, maximum, exp and the sum of the weights are fp32
  everywhere: an fp16 sum of 2048 equal weights stands still.
- ``halves``: how 16-bit values lie in buffers and tiles: packed two to a word, or native 16-bit types.
- ``hint``: highp; mediump: the shader may compute products in fp16; precise: no fused multiply-add.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace

import numpy as np

from orchestrator.domain.case import Case
from orchestrator.domain.digest import stable_id
from orchestrator.domain.kernel import Array, Axis, Buffer, Cost, Kernel, Reference, Tolerance
from orchestrator.ops import attention_inputs
from orchestrator.ops.attention_budget import BUDGET_VERSION, Arithmetic, attention_tolerance
from orchestrator.ops.attention_mask import LogitMask, mask_buffer, packed
from orchestrator.ops.attention_shape import EXTRAS, PARAMS, AttentionShape
from orchestrator.ops.halves import (
    computes_in_half,
    element_bytes,
    is_half,
    is_native,
    storage_dtype,
    tile_features,
)

__all__ = ["COMMON_AXES", "AttentionKernel", "AttentionShape", "attention_reference", "tile_of"]

COMMON_AXES: tuple[Axis, ...] = (
    Axis("api", ("gles", "vulkan"), default="gles"),
    Axis("precision", ("fp32", "fp16_storage", "fp16", "fp16_all"), default="fp32"),
    Axis("halves", ("packed", "native"), default="packed"),
    Axis("hint", ("highp", "mediump", "precise"), default="highp"),
)

MASK_WORD_BYTES = 4

_BLOCK_ELEMENTS = 1 << 22
"""Scores held at a time by the reference: 32 MiB of float64."""


class AttentionKernel(Kernel):
    """What all attention kernels have in common.

    Buffers q, k, v, mask where there is one (in) and o (out), as in attention_shape and attention_mask.
    ``online`` says whether the kernel rescales partial results when the running maximum grows; the error
    budget needs to know.
    """

    op = "attention"
    params = PARAMS
    distributions = tuple(attention_inputs.KNOWN)
    tolerance_version = f"attention-{BUDGET_VERSION}"
    online: bool
    extras: frozenset[str] = frozenset()
    """Of EXTRAS, the parameters that this kernel has learnt: its templates use first_key(), visible_keys(),
    masked() and kv_row(), and bind the buffer ``mask`` where there is one."""
    half_weights: bool = False
    """The weights exp(s - m) are rounded to fp16 before they multiply v; every product and sum is fp32."""

    def half_run(self, case: Case) -> int:
        """Where precision is fp16: weighted values that are summed in 16 bits, then in fp32; 0: none."""
        del case
        return 0

    def tile_sums(self, case: Case) -> int:
        """Keys whose terms are summed by themselves before they join those of earlier keys; 0: one by one."""
        del case
        return 0

    def invalid(self, case: Case) -> str | None:
        shape = AttentionShape.of(case)
        return (
            _impossible(case)
            or shape.invalid()
            or self._not_learnt(shape)
            or attention_inputs.refusal(
                case.inputs, shape, replace(_range_of(case), half_run=self.half_run(case))
            )
        )

    def _not_learnt(self, shape: AttentionShape) -> str | None:
        for name, value in shape.asked().items():
            if name not in self.extras:
                known = ", ".join(extra for extra in EXTRAS if extra in self.extras) or "none of them"
                return f"{self.name} cannot do {name} {value}; of {', '.join(EXTRAS)} it can do: {known}"
        return None

    def features(self, case: Case) -> frozenset[str]:
        return tile_features(case)

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        shape, dtype = AttentionShape.of(case), storage_dtype(case)
        mask = mask_buffer(case)
        return (
            Buffer("q", "in", dtype, shape.q_count),
            Buffer("k", "in", dtype, shape.kv_count),
            Buffer("v", "in", dtype, shape.kv_count),
            Buffer("o", "out", dtype, shape.q_count),
            *([] if mask is None else [mask]),
        )

    def data_key(self, case: Case) -> str:
        """Depends on the resolved shape: ``kv_seq: seq`` and its number are the same data."""
        return stable_id(
            {
                "op": "attention-3",
                "shape": asdict(AttentionShape.of(case)),
                "inputs": case.inputs,
                "seed": case.seed,
                "storage": storage_dtype(case),
            }
        )

    def inputs(self, case: Case) -> Mapping[str, Array]:
        shape = AttentionShape.of(case)
        storage = np.float16 if is_half(case) else np.float32
        q, k, v = (t.astype(storage) for t in attention_inputs.build(case.inputs, shape, case.seed))
        made: dict[str, Array] = {"q": q, "k": shape.stored(k), "v": shape.stored(v)}
        if shape.mask != "none":
            added = attention_inputs.build_mask(case.inputs, shape, case.seed)
            made["mask"] = packed(added > -np.inf) if shape.mask == "boolean" else added.astype(storage)
        return made

    def reference(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Reference]:
        shape = AttentionShape.of(case)
        k, v = shape.compact(inputs["k"]), shape.compact(inputs["v"])
        return {"o": attention_reference(inputs["q"], k, v, shape, inputs.get("mask"))}

    def tolerance(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Tolerance]:
        """Derivation: orchestrator/ops/attention_budget.py."""
        arithmetic = Arithmetic(
            half_output=is_half(case),
            mediump=case.axes["hint"] == "mediump",
            online=self.online,
            half_products=computes_in_half(case),
            half_sums=sums_in_half(case),
            half_weights=self.half_weights,
            half_run=self.half_run(case),
            tile_sums=self.tile_sums(case),
        )
        shape = AttentionShape.of(case)
        k, v = shape.compact(inputs["k"]), shape.compact(inputs["v"])
        return {"o": attention_tolerance(inputs["q"], k, v, shape, arithmetic, inputs.get("mask"))}

    def compulsory_bytes(self, case: Case) -> int:
        """q, the keys and values that some row sees, and what the mask says about pairs that causality and
        a window leave read once; o written once."""
        shape = AttentionShape.of(case)
        keys = shape.kv_heads * shape.keys_seen * shape.head_dim
        return (2 * shape.q_count + 2 * keys) * element_bytes(case) + self.mask_bytes(case, 1, 1)

    def mask_bytes(self, case: Case, br: int, bc: int) -> int:
        """Read by one head whose blocks of BR rows go through tiles of BC keys; a word of a boolean mask once
        by each of its rows."""
        shape = AttentionShape.of(case)
        match shape.mask:
            case "additive":
                return shape.pairs_read(br, bc) * element_bytes(case)
            case "boolean":
                return shape.mask_words_read(br, bc) * MASK_WORD_BYTES
            case _:
                return 0

    def tiled_cost(self, case: Case, q_elements: int) -> Cost:
        """Of one dispatch without a cache between workgroups: ``q_elements`` of q read, o written once, and
        for every block of BR rows K and V of its head and its rows' part of the mask again, from the first to
        the last tile that the block sees. Query heads that share a key/value head, and all heads that share
        the mask, are taken to share nothing.
        """
        shape, (br, bc) = AttentionShape.of(case), tile_of(case)
        kv_elements = 2 * shape.keys_read(br, bc) * shape.head_dim * shape.heads
        elements = q_elements + shape.q_count + kv_elements
        return Cost(
            flops=self.flops(case),
            bytes_min=self.compulsory_bytes(case),
            bytes_moved=elements * element_bytes(case) + shape.heads * self.mask_bytes(case, br, bc),
        )

    def flops(self, case: Case) -> int:
        """Multiply-adds count 2, of q·k and p·v: 4·pairs·head_dim·heads. Pairs that causality or a window
        hides do not count, those that a mask hides do: it is data. exp is not counted."""
        shape = AttentionShape.of(case)
        return 4 * shape.pairs * shape.head_dim * shape.heads


def tile_of(case: Case) -> tuple[int, int]:
    """(BR, BC) of a tile ``BRxBC``: query rows a workgroup, keys at a time."""
    br, bc = str(case.axes["tile"]).split("x")
    return int(br), int(bc)


def sums_in_half(case: Case) -> bool:
    return case.axes["precision"] == "fp16_all"


def _impossible(case: Case) -> str | None:
    """Why these axes contradict each other."""
    api, precision, hint = (case.axes[name] for name in ("api", "precision", "hint"))
    if computes_in_half(case):
        if api != "vulkan":
            return f"precision {precision} needs api vulkan; on GLES use hint mediump"
        if hint == "mediump":
            return f"hint mediump needs 32-bit arithmetic; precision {precision} has 16 bits already"
    if is_native(case) and not is_half(case):
        return "halves native needs a 16-bit precision: fp16_storage, fp16 or fp16_all"
    if api != "vulkan":
        if is_native(case):
            return "halves native needs api vulkan; GLES has no 16-bit types"
        if hint == "precise":
            return "hint precise needs api vulkan; GLSL ES 3.10 lacks the qualifier"
    return None


def _range_of(case: Case) -> attention_inputs.Range:
    return attention_inputs.Range(
        half_storage=is_half(case),
        mediump=case.axes["hint"] == "mediump",
        half_products=computes_in_half(case),
        half_sums=sums_in_half(case),
    )


def attention_reference(
    q: Array, k: Array, v: Array, shape: AttentionShape, mask: Array | None = None
) -> Reference:
    """Attention in float64 with the row maximum subtracted, on inputs as stored.

    Args:
        q: [heads, seq, head_dim]; k, v: [kv_heads, kv_seq, head_dim] (shape.compact), fp16 or fp32.
        mask: the buffer's contents where the shape has a mask.

    Returns:
        [heads, seq, head_dim] float64. A row with no visible key, or whose visible logits are all -inf, is
        exactly 0; a row with a NaN or +inf logit is NaN.
    """
    out = np.empty((shape.heads, shape.seq, shape.head_dim))
    rows = max(1, _BLOCK_ELEMENTS // shape.kv_seq)
    logit_mask = LogitMask(shape, mask)
    for head in range(shape.heads):
        keys = k[head // shape.group].astype(np.float64)
        values = v[head // shape.group].astype(np.float64)
        for start in range(0, shape.seq, rows):
            stop = min(shape.seq, start + rows)
            queries = q[head, start:stop].astype(np.float64) * shape.scale
            with np.errstate(invalid="ignore"):
                scores: Reference = queries @ keys.T
                logit_mask.apply(scores, start)
                peak: Reference = np.max(scores, axis=1, keepdims=True)
                scores -= np.where(np.isneginf(peak), 0.0, peak)
                np.exp(scores, out=scores)
                total = scores.sum(axis=1, keepdims=True)
                weighted = scores @ values
            np.divide(weighted, total, out=weighted, where=total != 0.0)
            out[head, start:stop] = weighted
    return out
