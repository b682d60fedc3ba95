"""attention_naive and attention_flash broken on purpose: a few text replacements in a template each."""

from orchestrator.domain.case import AxisValue
from tests.kernels.attention_mutant import Mutant

FLASH = "attention_flash/flash.comp.j2"
ROWS = "attention_flash/rows.comp.j2"
SCORES = "attention_naive/scores.comp.j2"
SOFTMAX = "attention_naive/softmax.comp.j2"
WEIGHTED = "attention_naive/weighted.comp.j2"
SHARED = "_shared/attention.glsl.j2"

# Without memoryBarrierShared, too: lavapipe makes a whole barrier of it.
FIRST_BARRIER = """        memoryBarrierShared();
        barrier(); // nobody reads the previous tile any more
"""
SYNCHRONISED = "        memoryBarrierShared();\n        barrier();\n"
LOADED_BARRIER = "        }\n        memoryBarrierShared();\n        barrier();\n\n        float s[BC];"
TERM = '{{ attention.as_value("p%d * widen(v_tile[(uint(c) + %du) * V_STRIDE + %s])" % (g, g, i)) }}'
ACCUMULATE = f"o[{{{{ i }}}}] += {TERM};"
ROUNDED = """
vec4 rounded(vec4 x) {
    return vec4(unpackHalf2x16(packHalf2x16(x.xy)), unpackHalf2x16(packHalf2x16(x.zw)));
}"""
VISIBLE = "masked({{ logit(g) }}, row, tile + c + {{ g }})"
TILES_16: dict[str, AxisValue] = {"tile": "16x16"}

SQUARE: dict[str, AxisValue] = {"seq": 40, "head_dim": 8, "heads": 2}
PARTIAL: dict[str, AxisValue] = {"seq": 9, "kv_seq": 33, "head_dim": 8, "heads": 2}

FLASH_MUTANTS = (
    Mutant(
        "no_rescale",
        "the accumulator is not rescaled when the running maximum grows",
        ((FLASH, 'o[{{ i }}] *= {{ "float16_t(correction)" if low_sums else "correction" }};', ""),),
        {"seq": 5, "kv_seq": 128, "head_dim": 8, "heads": 2},
        inputs="n9_rising_logits",
    ),
    Mutant(
        "no_barrier_after_load",
        "the tile is read before all of it is loaded",
        ((FLASH, LOADED_BARRIER, LOADED_BARRIER.replace(SYNCHRONISED, "")),),
        SQUARE,
        axes=TILES_16,
        breaks=lambda _, row: row % 16 != 15,
        race=True,
    ),
    Mutant(
        "no_barrier_before_load",
        "the next tile is loaded while this one is still read",
        ((FLASH, FIRST_BARRIER, ""),),
        SQUARE,
        axes=TILES_16,
        breaks=lambda _, row: row % 16 != 0,
        race=True,
    ),
    Mutant(
        "zero_padding_wins",
        "keys of the padding count as logits of 0",
        ((FLASH, VISIBLE, "{{ logit(g) }}"),),
        PARTIAL,
        inputs="n7_logit_minus_50",
    ),
    Mutant(
        "nan_without_keys",
        "0/0 in rows without visible keys",
        ((FLASH, "l == 0.0 ? 0.0 : 1.0 / l;", "1.0 / l;"),),
        {"seq": 8, "kv_seq": 4, "head_dim": 8, "heads": 2, "causal": True},
        inputs="n4_rows_without_keys",
        breaks=lambda _, row: row < 4,
    ),
    Mutant(
        "nan_in_rescale",
        "(-inf) - (-inf) while nothing was visible yet",
        (
            (FLASH, "m == NEG_INF ? 0.0 : m;", "m;"),
            (SHARED, "return s == NEG_INF ? 0.0 : exp(s - shift);", "return exp(s - shift);"),
        ),
        {"seq": 5, "kv_seq": 64, "head_dim": 8, "heads": 2},
        inputs="n5_first_tile_masked",
    ),
    Mutant(
        "last_row_unwritten",
        "the last row is never stored",
        ((FLASH, "    if (row < SEQ) {", "    if (row < SEQ - 1) {"),),
        SQUARE,
        breaks=lambda _, row: row == 39,
        unwritten=True,
    ),
    Mutant(
        "fp16_accumulator",
        "the accumulator of o is rounded to fp16",
        (
            (FLASH, ACCUMULATE, f"o[{{{{ i }}}}] = rounded(o[{{{{ i }}}}] + {TERM});"),
            (FLASH, "// Place of word i of key c in k_tile.", ROUNDED),
        ),
        {"seq": 5, "kv_seq": 2048, "head_dim": 8, "heads": 2},
        inputs="n8_constant_40",
    ),
    Mutant(
        "fp16_denominator",
        "the running sum is rounded to fp16 and sticks at 2048",
        (
            (
                FLASH,
                "            l += p{{ g }};",
                "            l = unpackHalf2x16(packHalf2x16(vec2(l + p{{ g }}, 0.0))).x;",
            ),
        ),
        {"seq": 5, "kv_seq": 4096, "head_dim": 8, "heads": 2},
        inputs="n8_alternating",
    ),
    Mutant(
        "maximum_not_kept",
        "the running maximum is not updated",
        ((FLASH, "            m = highest;\n", ""),),
        {"seq": 5, "kv_seq": 4, "head_dim": 8, "heads": 2},
        inputs="n1_logit_151",
    ),
    Mutant(
        "last_key_dropped",
        "the tail is one key short",
        ((FLASH, VISIBLE, "masked({{ logit(g) }}, row, tile + c + {{ g + 1 }})"),),
        {**PARTIAL, "kv_seq": 128, "causal": True},
        inputs="n9_last_logit_30",
    ),
    Mutant(
        "causal_off_by_one",
        "every row sees one key too many",
        ((SHARED, "{{ 1 if causal else window }}, 0,", "{{ 2 if causal else window }}, 0,"),),
        {**SQUARE, "causal": True},
        breaks=lambda _, row: row < 39,
    ),
    Mutant(
        "wrong_grouping",
        "query heads read key/value heads in turn instead of in groups",
        ((FLASH, "uint kv_head = head / GROUP;", "uint kv_head = head % {{ kv_heads }}u;"),),
        {**SQUARE, "heads": 4, "kv_heads": 2},
        breaks=lambda head, _: head in (1, 2),
    ),
    Mutant(
        "padded_row_stride",
        "rows of 5 elements are read as if they were 8 apart",
        (
            (
                SHARED,
                "[row * HEAD_DIM + d] :",
                "[row * (UNITS * 4u) + d] :",
            ),
        ),
        {"seq": 9, "kv_seq": 1, "head_dim": 5, "heads": 2},
        inputs="n6_one_key",
        breaks=lambda head, _: head == 1,
    ),
    Mutant(
        "padded_output_stride",
        "rows of 5 elements are written as if they were 8 apart",
        (
            (
                SHARED,
                "[row * HEAD_DIM + d + j] =",
                "[min(row * (UNITS * 4u) + d + j, 89u)] =",
            ),
        ),
        {"seq": 9, "kv_seq": 1, "head_dim": 5, "heads": 2},
        inputs="n6_one_key",
        breaks=lambda head, row: (9 * head + row) % 8 != 0,
        unwritten=True,
    ),
    Mutant(
        "swapped_tile_layout",
        "the K tile is written transposed and read straight",
        ((FLASH, "k_tile[k_at(c, i)] = real ?", "k_tile[n % UNITS * uint(BC) + n / UNITS] = real ?"),),
        PARTIAL,
    ),
    Mutant(
        "stale_key_tile",
        "the first K tile is loaded again and again",
        (
            (
                FLASH,
                "real ? fetch_k(kv_row(kv_head, uint(tile) + c), i)",
                "real ? fetch_k(kv_row(kv_head, c), i)",
            ),
        ),
        {**SQUARE, "causal": True},
        axes=TILES_16,
        breaks=lambda _, row: row >= 16,
    ),
    Mutant(
        "no_scale",
        "logits are not divided by √head_dim",
        ((FLASH, "widen(fetch_q(q_row, {{ i }})) * SCALE;", "widen(fetch_q(q_row, {{ i }}));"),),
        SQUARE,
    ),
    Mutant(
        "one_sum_for_the_tile",
        "one running sum for all rows of a workgroup, as a published listing has it",
        (
            (FLASH, "// Place of word i of key c in k_tile.", "shared float sums_of_rows[{{ br }}];"),
            (
                FLASH,
                "    if (row < SEQ) {",
                "    sums_of_rows[lane] = row < SEQ ? l : 0.0;\n    memoryBarrierShared();\n    barrier();\n"
                "    l = 0.0;\n    for (int n = 0; n < BR; ++n) { l += sums_of_rows[n]; }\n"
                "    if (row < SEQ) {",
            ),
        ),
        SQUARE,
        axes=TILES_16,
    ),
    Mutant(
        "finite_minus_infinity",
        "-1e4 stands for minus infinity",
        ((SHARED, "#define NEG_INF uintBitsToFloat(0xff800000u)", "#define NEG_INF (-1.0e4)"),),
        {"seq": 5, "kv_seq": 4, "head_dim": 8, "heads": 2},
        inputs="n3_logit_minus_20000",
    ),
)

TWO_ROWS: dict[str, AxisValue] = {"tile": "16x16", "rows": 2}

ROWS_MUTANTS = (
    Mutant(
        "rows_no_barrier_after_load",
        "the tile is read before all of it is loaded",
        (
            (
                ROWS,
                "        }\n        memoryBarrierShared();\n        barrier();\n\n        for (uint c",
                "        }\n\n        for (uint c",
            ),
        ),
        SQUARE,
        axes=TWO_ROWS,
        race=True,
    ),
    Mutant(
        "rows_partial_logits_not_summed",
        "a row's logit is that of one share of head_dim",
        ((ROWS, "for (uint n = 0u; n < ROWS; ++n) {", "for (uint n = 0u; n < 1u; ++n) {"),),
        SQUARE,
        axes=TWO_ROWS,
    ),
    Mutant(
        "rows_weights_of_the_first",
        "every shared row is weighted as the first of them",
        ((ROWS, 'first_lane + %du]" % (g, r)', 'first_lane]" % g'),),
        SQUARE,
        axes=TWO_ROWS,
        breaks=lambda _, row: row % 2 == 1,
    ),
    Mutant(
        "rows_no_rescale",
        "the accumulator is not rescaled when the running maximum grows",
        ((ROWS, 'o{{ r }}_{{ i }} *= {{ "float16_t(back)" if low_sums else "back" }};', ""),),
        {"seq": 5, "kv_seq": 128, "head_dim": 8, "heads": 2},
        inputs="n9_rising_logits",
        axes=TWO_ROWS,
    ),
    Mutant(
        "rows_zero_padding_wins",
        "keys of the padding count as logits of 0",
        (
            (
                ROWS,
                "masked(s_{{ g }}.{{ e }}, row, tile + int(c) + {{ 4 * g + loop.index0 }})",
                "s_{{ g }}.{{ e }}",
            ),
        ),
        PARTIAL,
        inputs="n7_logit_minus_50",
        axes=TWO_ROWS,
    ),
)

NAIVE_MUTANTS = (
    Mutant(
        "naive_no_maximum",
        "exp without subtracting the row maximum",
        ((SOFTMAX, "float shift = m == NEG_INF ? 0.0 : m;", "float shift = 0.0;"),),
        {"seq": 5, "kv_seq": 4, "head_dim": 8, "heads": 2},
        inputs="n1_logit_151",
    ),
    Mutant(
        "naive_no_reduction",
        "the sum of the first lane stands for the row's",
        ((SOFTMAX, "partial[lane] += partial[lane + half_lanes];", ""),),
        SQUARE,
    ),
    Mutant(
        "naive_no_barrier_after_load",
        "the chunk is read before all of it is loaded",
        (
            (
                SCORES,
                "        }\n        memoryBarrierShared();\n        barrier();\n",
                "        }\n",
            ),
        ),
        SQUARE,
        axes=TILES_16,
        breaks=lambda _, row: row % 16 != 15,
        race=True,
    ),
    Mutant(
        "naive_causal_off_by_one",
        "every row misses its last key",
        (
            (
                SCORES,
                "masked({{ logit }}, int(row), int(key))",
                "masked({{ logit }}, int(row), int(key) + 1)",
            ),
        ),
        {**SQUARE, "causal": True},
    ),
    Mutant(
        "naive_heads_mixed",
        "every head reads the scores of head 0",
        ((WEIGHTED, "scores[q_row * uint(KV_SEQ) + first + x]", "scores[row * uint(KV_SEQ) + first + x]"),),
        SQUARE,
        breaks=lambda head, _: head == 1,
    ),
    Mutant(
        "naive_last_word_unwritten",
        "the last word of every row is never stored",
        ((WEIGHTED, "unit < UNITS) {", "unit < UNITS - 1u) {"),),
        SQUARE,
        unwritten=True,
    ),
)

FP16: dict[str, AxisValue] = {"api": "vulkan", "precision": "fp16", "halves": "native"}

FP16_MUTANTS = (
    Mutant(
        "fp16_accumulator_where_fp32_was_promised",
        "o is accumulated in fp16: 256 values of 500 overflow",
        ((FLASH, ACCUMULATE, f"o[{{{{ i }}}}] = WIDE(HALF(o[{{{{ i }}}}] + {TERM}));"),),
        {"seq": 5, "kv_seq": 256, "head_dim": 8, "heads": 2},
        inputs="n8_constant_500",
        axes=FP16,
    ),
    Mutant(
        "fp16_accumulator_of_naive",
        "o is accumulated in fp16: 4096 values of 32 overflow",
        (
            (
                WEIGHTED,
                """o += {{ attention.as_value("%s * widen(v_tile[%du * STRIDE + x])" """
                """% (p % (j ~ "u"), j)) }};""",
                """o = WIDE(HALF(o + {{ attention.as_value("%s * widen(v_tile[%du * STRIDE + x])" """
                """% (p % (j ~ "u"), j)) }}));""",
            ),
        ),
        {"seq": 5, "kv_seq": 4096, "head_dim": 8, "heads": 2},
        inputs="n8_constant_32",
        axes={**FP16, "vector": 4},
    ),
    Mutant(
        "fp16_denominator_where_fp32_was_promised",
        "the sum of the weights is fp16 and sticks at 2048",
        ((FLASH, "l += float(p{{ g }});", "l = float(float16_t(l + float(p{{ g }})));"),),
        {"seq": 5, "kv_seq": 4096, "head_dim": 8, "heads": 2},
        inputs="n8_alternating",
        axes=FP16,
    ),
    Mutant(
        "fp16_products_before_the_scale",
        "q is not scaled before the product: -600 times 800 overflows",
        (
            (SHARED, "return HALF(WIDE(widen(word)) * SCALE);", "return widen(word);"),
            (
                FLASH,
                'if low_sums else "total(sums%s)" % g }}',
                'if low_sums else "total(sums%s) * SCALE" % g }}',
            ),
        ),
        {"seq": 5, "kv_seq": 4, "head_dim": 64, "heads": 2},
        inputs="n3_logit_minus_60000",
        axes=FP16,
    ),
)

MUTANTS = FLASH_MUTANTS + ROWS_MUTANTS + NAIVE_MUTANTS
"""In fp32, through both APIs."""
