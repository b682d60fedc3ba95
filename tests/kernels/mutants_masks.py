"""What masks, windows, alignments, caches and padding add, broken on purpose: one edit or two a mutant.

Mutants of a kernel share few workloads, so that the true kernels compile few programs for them.
"""

from orchestrator.domain.case import AxisValue
from tests.kernels.attention_mutant import Mutant
from tests.kernels.mutants import ACCUMULATE, FLASH, ROWS, SCORES, SHARED, TERM, TWO_ROWS, WEIGHTED

Workload = dict[str, AxisValue]

LOOPS: Workload = {"vector": 1}
"""Text that is not unrolled compiles faster."""
ADDED: Workload = {"seq": 20, "head_dim": 8, "heads": 2, "mask": "additive"}
BITS: Workload = {"seq": 20, "kv_seq": 40, "head_dim": 8, "heads": 2, "mask": "boolean"}
WINDOW: Workload = {"seq": 20, "head_dim": 8, "heads": 2, "causal": True, "window": 6}
BOTH_WAYS: Workload = {"seq": 20, "head_dim": 8, "heads": 2, "window": 6}
CACHE: Workload = {"seq": 5, "kv_seq": 20, "head_dim": 8, "heads": 2, "kv_rows": 30}
SPELLED: Workload = {"seq": 8, "kv_seq": 4, "head_dim": 8, "heads": 2, "mask": "additive"}
LOWEST: Workload = {"seq": 8, "kv_seq": 40, "head_dim": 8, "heads": 2, "mask": "additive"}
NUMBER = "mask_number(mask_row, mask_key)"
SUM = f"float sum = logit + {NUMBER};"

MASK_MUTANTS = (
    Mutant(
        "mask_transposed",
        "rows and columns of the mask are swapped",
        ((SHARED, NUMBER, "mask_number(mask_key, mask_row)"),),
        ADDED,
        axes=LOOPS,
    ),
    Mutant(
        "mask_aligned_on_the_left",
        "the mask's axes stand for (head, row) instead of (row, key): every row still sums to 1 (G1-10)",
        ((SHARED, NUMBER, "mask_number(int(gl_WorkGroupID.y), mask_row)"),),
        ADDED,
        axes=LOOPS,
    ),
    Mutant(
        "mask_of_the_other_half",
        "numbers of a packed mask all come from the lower half of their word",
        ((SHARED, "data_mask[e >> 1u] >> ((e & 1u) << 4u)", "data_mask[e >> 1u]"),),
        ADDED,
        axes={**LOOPS, "precision": "fp16_storage"},
    ),
    Mutant(
        "mask_before_the_scale",
        "the mask is divided by √head_dim as well",
        ((SCORES, "masked({{ logit }}, int(row), int(key))", "masked(s, int(row), int(key)) * SCALE"),),
        ADDED,
    ),
    Mutant(
        "mask_of_the_first_row",
        "rows that share registers share the first one's mask",
        ((ROWS, ".{{ e }}, row, tile", ".{{ e }}, row - int(share), tile"),),
        ADDED,
        axes=TWO_ROWS,
        breaks=lambda _, row: row % 2 == 1,
    ),
    Mutant(
        "mask_bits_from_the_top",
        "the first key of a word is its highest bit",
        ((SHARED, ">> (uint(key) & 31u)", ">> (31u - (uint(key) & 31u))"),),
        BITS,
        axes=LOOPS,
    ),
    Mutant(
        "mask_words_rounded_down",
        "40 keys are taken for one word of bits",
        ((SHARED, "uint(KV_SEQ + 31) >> 5u", "uint(KV_SEQ) >> 5u"),),
        BITS,
        axes=LOOPS,
        breaks=lambda _, row: row > 0,
    ),
    Mutant(
        "mask_never_empties_a_row",
        "whatever is below -1e4 counts as masked, as a published fix has it (G1-04)",
        ((SHARED, "return s == NEG_INF ?", "return s < -1.0e4 ?"),),
        SPELLED,
        inputs="n4_mask_65504",
        axes=LOOPS,
        breaks=lambda _, row: row < 4,
    ),
    Mutant(
        "mask_added_in_half",
        "-65504 - 16 is -inf, as in an fp16 sum (N12)",
        ((SHARED, "return seen ? sum", "return seen && sum > -65519.5 ? sum"),),
        LOWEST,
        inputs="n12_score_minus_16",
        axes={**LOOPS, "precision": "fp16_storage"},
        breaks=lambda _, row: row % 2 == 1,
    ),
    Mutant(
        "causality_beats_the_mask",
        "under a causal mask the boolean one is not looked at",
        ((SHARED, "return seen && shown ?", "return seen ?"),),
        {"seq": 8, "head_dim": 8, "heads": 2, "causal": True, "mask": "boolean"},
        inputs="n4_causal_and_mask",
        axes=LOOPS,
    ),
    Mutant(
        "window_a_key_short",
        "a window shows one key less in the past",
        ((SHARED, "- {{ window - 1 }}, 0,", "- {{ window - 2 }}, 0,"),),
        WINDOW,
        axes=LOOPS,
        breaks=lambda _, row: row >= 5,
    ),
    Mutant(
        "window_a_key_long",
        "a window shows one key more in the past",
        ((SHARED, "- {{ window - 1 }}, 0,", "- {{ window }}, 0,"),),
        WINDOW,
        axes=LOOPS,
        breaks=lambda _, row: row >= 6,
    ),
    Mutant(
        "window_a_key_too_far_ahead",
        "a window without causality shows one key more ahead",
        ((SHARED, "{{ 1 if causal else window }}, 0,", "{{ 1 if causal else window + 1 }}, 0,"),),
        BOTH_WAYS,
        axes=LOOPS,
        breaks=lambda _, row: row < 14,
    ),
    Mutant(
        "window_of_the_last_row",
        "a block begins where its last row does",
        ((FLASH, "first_key(first_row) / BC * BC", "first_key(first_row + BR - 1) / BC * BC"),),
        WINDOW,
        axes=LOOPS,
        breaks=lambda _, row: row % 8 < 5 and row >= 8,
    ),
    Mutant(
        "window_tile_left_out",
        "a tile of weights whose last keys are seen is left out of the sum",
        ((WEIGHTED, "uint(first_key(first_row)) / T * T", "uint(first_key(first_row) + 5) / T * T"),),
        WINDOW,
        breaks=lambda _, row: row % 8 < 5 and row >= 8,
    ),
    Mutant(
        "top_left_for_bottom_right",
        "the first query stands at the first key",
        ((SHARED, "clamp(row + ({{ diagonal }}) + {{ 1 if", "clamp(row + {{ 1 if"),),
        {"seq": 5, "kv_seq": 20, "head_dim": 8, "heads": 2, "causal": True},
        axes=LOOPS,
    ),
    Mutant(
        "bottom_right_for_top_left",
        "the last query stands at the last key",
        ((SHARED, "clamp(row + ({{ diagonal }}) + {{ 1 if", "clamp(row + (KV_SEQ - SEQ) + {{ 1 if"),),
        {"seq": 5, "kv_seq": 20, "head_dim": 8, "heads": 2, "causal": True, "align": "top_left"},
        axes=LOOPS,
    ),
    Mutant(
        "cache_orders_swapped",
        "a cache of rows is read as one of heads",
        ((SHARED, '{% if kv_order == "row" %}', '{% if kv_order == "head" %}'),),
        {**CACHE, "kv_order": "row"},
        axes=LOOPS,
    ),
    Mutant(
        "cache_stride_is_kv_seq",
        "the second head is looked for after the first one's keys, among unused rows",
        ((SHARED, "kv_head * uint({{ kv_rows }}) + key", "kv_head * uint(KV_SEQ) + key"),),
        CACHE,
        axes=LOOPS,
        breaks=lambda head, _: head == 1,
    ),
    Mutant(
        "unused_rows_in_the_last_tile",
        "the last tile is filled from unused rows, whose weight of 0 does not undo NaN (N13)",
        ((FLASH, "bool real = tile + int(c) < KV_SEQ;", "bool real = tile + int(c) < {{ kv_rows }};"),),
        CACHE,
        axes=LOOPS,
    ),
    Mutant(
        "padding_forgotten",
        "values are written with padding between rows and read without",
        ((FLASH, ACCUMULATE, f"o[{{{{ i }}}}] += {TERM.replace('V_STRIDE', 'UNITS')};"),),
        ADDED,
        axes={**LOOPS, "pad": 1},
    ),
)
