"""Shapes on which the named input distributions of attention are run, small enough for a software GPU.

Compiling takes nearly all the time of such a case, so that inputs of one shape share their variants, and a
driver sees a few of these.
"""

import os
from itertools import product

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Kernel
from tests.kernels.drivers import DRIVERS, Driver
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

GROUPS = tuple(dict.fromkeys(str(shape) for shape in WORKLOADS.values()))
"""The different shapes of ``WORKLOADS``; inputs of a group share programs."""

PRECISIONS = ("fp32", "fp16_storage")
HINTS = ("highp", "mediump")
SIXTEEN_BITS = tuple(
    {"precision": precision, "halves": halves}
    for precision, halves in product(("fp16_storage", "fp16", "fp16_all"), ("packed", "native"))
)
"""Every way of 16 bits on Vulkan; packed storage, the first, is all that SwiftShader has."""
FP32_ONLY = {"beyond_half"}
ALL_VARIANTS = "TILEFARM_TEST_ALL_VARIANTS"
"""Set to anything: every input in all variants on every driver, some minutes instead of half of one."""


def named_case(kernel: Kernel, inputs: str, shape: Workload | None = None, /, **axes: AxisValue) -> Case:
    """A distribution on its shape, or on one that differs in ``shape``; 8x8 tiles unless told otherwise."""
    variant = {"tile": "8x8", **axes}
    workload = {**BASE, **(WORKLOADS | MASKED_WORKLOADS)[inputs], **(shape or {})}
    return make_case(kernel, workload, inputs=inputs, axes=variant)


def named_cases(kernel: Kernel, on: Driver) -> list[Case]:
    """What a driver sees of a kernel: every input in the variants of its group, as far as they exist."""
    found: dict[str, Case] = {}
    for inputs, shape in WORKLOADS.items():
        for axes in group_variants(kernel, on, GROUPS.index(str(shape))):
            # Not every input exists in mediump.
            for hint in (axes.get("hint", "highp"), "highp"):
                case = named_case(kernel, inputs, api=on.api, **{**axes, "hint": hint})
                if on.refuses(kernel, case) is None:
                    found[case.case_id] = case
                    break
    # Inputs that share programs follow each other: the runner keeps a few programs only.
    return sorted(found.values(), key=lambda case: (str(case.workload), str(case.axes)))


def group_variants(kernel: Kernel, on: Driver, group: int) -> list[dict[str, AxisValue]]:
    """Variants of a group of inputs on a driver.

    llvmpipe, the only one with GLES, has fp32 and packed storage of every group; each of the two on Vulkan
    has fp32 or packed storage in turn, and lavapipe one more way of 16 bits. Vectors, layouts and hints take
    turns, and with them numbers of rows where a kernel can share them. Logits that are too large for 16 bits,
    which have 4 keys, meet every way of 16 bits on lavapipe.
    """
    if os.environ.get(ALL_VARIANTS):
        return all_variants(kernel, on)
    turn = group + (kernel.name == "attention_flash")
    if on.api == "gles":
        return [
            {"precision": p, "hint": HINTS[(turn // 2 + n) % 2], **_form(kernel, turn + n)}
            for n, p in enumerate(PRECISIONS)
        ]
    way = (turn + DRIVERS.index(on.name)) % 2
    first: dict[str, AxisValue] = {"hint": "precise", "precision": "fp32"} if way else {**SIXTEEN_BITS[0]}
    found: list[dict[str, AxisValue]] = [{**first, **_form(kernel, turn + 1)}]
    if on.name == "lavapipe":
        large = GROUPS[group] == str(WORKLOADS["n1_logit_151"])
        ways = SIXTEEN_BITS[1:] if large else (SIXTEEN_BITS[1 + turn % 5],)
        found += [{**w, **_form(kernel, turn + n)} for n, w in enumerate(ways)]
    return found


def _form(kernel: Kernel, turn: int) -> dict[str, AxisValue]:
    """One of six ways to walk over a tile, of four without shared rows."""
    forms: list[dict[str, AxisValue]] = [
        {"vector": 1, "layout": "row"},
        {"vector": 4, "layout": "column"},
        {"vector": 4, "layout": "row"},
        {"vector": 1, "layout": "column"},
        {"rows": 2},
        {"rows": 4},
    ]
    if not shares_rows(kernel):
        forms = forms[:4]
    return forms[turn % len(forms)]


def all_variants(kernel: Kernel, on: Driver) -> list[dict[str, AxisValue]]:
    """Every precision in every form and hint that the driver has."""
    hints = ("highp", "mediump") if on.api == "gles" else ("highp", "precise")
    return [
        {**way, **_form(kernel, form), "hint": hint}
        for way, form, hint in product(({"precision": "fp32"}, *sixteen_bits(on.api)), range(6), hints)
    ]


def sixteen_bits(api: str) -> tuple[dict[str, str], ...]:
    """Every way of 16 bits through an API."""
    return SIXTEEN_BITS if api == "vulkan" else ({"precision": "fp16_storage"},)


def shares_rows(kernel: Kernel) -> bool:
    return any(axis.name == "rows" for axis in kernel.axes)
