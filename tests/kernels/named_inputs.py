"""Shapes on which the named input distributions of attention are run, small enough for a software GPU."""

import os
from itertools import product

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Kernel
from tests.kernels.harness import make_case

Workload = dict[str, AxisValue]

BASE: Workload = {"seq": 8, "kv_seq": 33, "head_dim": 8, "heads": 2}

WORKLOADS: dict[str, Workload] = {
    "normal": {},
    "n1_logit_151": {"kv_seq": 4},
    "n1_logit_12": {"kv_seq": 4},
    "n2_dot_73728": {},
    "n3_logit_minus_60000": {"kv_seq": 4},
    "n3_logit_minus_20000": {"kv_seq": 4},
    "n4_rows_without_keys": {"kv_seq": 4, "causal": True},
    "n5_first_tile_masked": {"kv_seq": 64},
    "n6_one_key": {"kv_seq": 1, "head_dim": 5, "kv_heads": 1},
    "n7_logit_minus_50": {},
    "n8_constant_500": {"kv_seq": 256},
    "n8_constant_40": {"kv_seq": 2048},
    "n8_constant_32": {"kv_seq": 4096},
    "n8_alternating": {"kv_seq": 4096},
    "n9_rising_logits": {"kv_seq": 128},
    "n9_last_logit_30": {"kv_seq": 128},
    "n10_faint_majority": {"kv_seq": 4096},
    "n15_nan_row": {},
    "n15_inf_row": {},
    "beyond_half": {},
}

MASKED_WORKLOADS: dict[str, Workload] = {
    "n4_mask_inf": {"kv_seq": 4, "mask": "additive"},
    "n4_mask_65504": {"kv_seq": 4, "mask": "additive"},
    "n4_mask_1e9": {"kv_seq": 4, "mask": "additive"},
    "n4_causal_and_mask": {"kv_seq": 8, "mask": "boolean", "causal": True},
    "n12_score_minus_16": {"kv_seq": 40, "mask": "additive"},
    "n12_score_minus_15": {"kv_seq": 40, "mask": "additive"},
}
"""Those that need a mask, which not every kernel has learnt."""

PRECISIONS = ("fp32", "fp16_storage")
HINTS = ("highp", "mediump")
ALL_VARIANTS = "TILEFARM_TEST_ALL_VARIANTS"
"""Set to anything: every input in all 16 variants, some minutes instead of one."""


def named_case(kernel: Kernel, inputs: str, shape: Workload | None = None, /, **axes: AxisValue) -> Case:
    """A distribution on its shape, or on one that differs in ``shape``; 8x8 tiles unless told otherwise."""
    variant = {"tile": "8x8", **axes}
    workload = {**BASE, **(WORKLOADS | MASKED_WORKLOADS)[inputs], **(shape or {})}
    return make_case(kernel, workload, inputs=inputs, axes=variant)


def variants(kernel: Kernel, number: int) -> list[dict[str, AxisValue]]:
    """Four of the 16 variants: each precision with each vector; four consecutive numbers give all 16.

    For a kernel that can share rows, also each precision with 2 or 4 rows."""
    turns = range(4) if os.environ.get(ALL_VARIANTS) else (number,)
    found: list[dict[str, AxisValue]] = [
        {
            "precision": PRECISIONS[half],
            "vector": (1, 4)[wide],
            "hint": HINTS[(half + wide + turn) % 2],
            "layout": ("row", "column")[(wide + turn // 2) % 2],
        }
        for turn, half, wide in product(turns, range(2), range(2))
    ]
    if shares_rows(kernel):
        found += [
            {
                "precision": PRECISIONS[half],
                "rows": (2, 4)[(half + turn) % 2],
                "hint": HINTS[(half + turn // 2) % 2],
            }
            for turn, half in product(turns, range(2))
        ]
    return found


SIXTEEN_BITS = tuple(
    {"precision": precision, "halves": halves}
    for precision, halves in product(("fp16_storage", "fp16", "fp16_all"), ("packed", "native"))
)
"""Every way of 16 bits on Vulkan; packed storage, the first, is all that SwiftShader has."""


def vulkan_variants(kernel: Kernel, number: int) -> list[dict[str, AxisValue]]:
    """fp32, packed storage and two more of the 16-bit ways; five consecutive numbers give all of them.

    For a kernel that can share rows, also fp32 and one of the 16-bit ways with 2 or 4 rows."""
    shape = {"vector": (1, 4)[number % 2], "layout": ("row", "column")[number // 2 % 2]}
    other = {"vector": (4, 1)[number % 2], "layout": shape["layout"]}
    further = SIXTEEN_BITS[1:]
    found: list[dict[str, AxisValue]] = [
        {"precision": "fp32", "hint": ("highp", "precise")[number // 2 % 2], **shape},
        {**SIXTEEN_BITS[0], **other},
        {**further[number % 5], **shape},
        {**further[(number + 2) % 5], **other},
    ]
    if shares_rows(kernel):
        rows = {"rows": (2, 4)[number % 2]}
        found += [{"precision": "fp32", **rows}, {**SIXTEEN_BITS[number % 6], **rows}]
    return [{"api": "vulkan", **variant} for variant in found]


def sixteen_bits(api: str) -> tuple[dict[str, str], ...]:
    """Every way of 16 bits through an API."""
    return SIXTEEN_BITS if api == "vulkan" else ({"precision": "fp16_storage"},)


def shares_rows(kernel: Kernel) -> bool:
    return any(axis.name == "rows" for axis in kernel.axes)
