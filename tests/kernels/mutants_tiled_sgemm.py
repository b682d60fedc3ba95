"""attention_tiled_sgemm broken on purpose: a few text replacements in a template or in kernel.py each."""

from orchestrator.domain.case import AxisValue
from tests.kernels.attention_mutant import Mutant

NAME = "attention_tiled_sgemm"
KERNEL = f"{NAME}/kernel.py"
SCORES = f"{NAME}/scores.comp.j2"
SOFTMAX = f"{NAME}/softmax.comp.j2"
WEIGHTED = f"{NAME}/weighted.comp.j2"
FINISH = f"{NAME}/finish.comp.j2"

SMALL: dict[str, AxisValue] = {"tile": 32, "block": "16x16x16"}
"""Two blocks of keys a tile, and 8 rows that share a workgroup of the softmax."""
WIDE: dict[str, AxisValue] = {"tile": 32, "block": "32x32x16"}
"""Of 64 invocations: more than any software driver runs in step, so that races show."""

SQUARE: dict[str, AxisValue] = {"seq": 40, "head_dim": 20, "heads": 4, "kv_heads": 2}
"""Two tiles, three blocks of rows, two of output columns, grouped heads."""
PARTIAL: dict[str, AxisValue] = {"seq": 9, "kv_seq": 33, "head_dim": 8, "heads": 2}
RISING: dict[str, AxisValue] = {"seq": 5, "kv_seq": 128, "head_dim": 8, "heads": 2}

MASKED = "masked(s{{ r }}.{{ c }}, int(row{{ r }}), key + {{ loop.index0 }})"
LOADED = "        memoryBarrierShared();\n        barrier();\n        for (uint d = 0u; d < BK; ++d) {"

MUTANTS = (
    Mutant(
        "one-sum-for-a-tile",
        "one running maximum and one running sum for all rows of a tile: the fault of the RenderScript text",
        (
            (
                SOFTMAX,
                "    m = max(before, partial[id - lane]);\n",
                "    m = before;\n"
                "    for (uint n = 0u; n < ROWS; ++n) {\n        m = max(m, partial[n * LANES]);\n    }\n",
            ),
            (
                SOFTMAX,
                "        state[rows + at] = l + partial[id];\n",
                "        for (uint n = 0u; n < ROWS; ++n) {\n"
                "            l += partial[n * LANES];\n        }\n"
                "        state[rows + at] = l;\n",
            ),
            (
                SOFTMAX,
                "    if (real && lane == 0u) {\n",
                "    memoryBarrierShared();\n    barrier();\n    if (real && lane == 0u) {\n",
            ),
        ),
        SQUARE,
    ),
    Mutant(
        "no-rescale",
        "the accumulator keeps the scale of the old maximum",
        ((WEIGHTED, " * state[2u * {{ heads }}u * uint(SEQ) + at]", ""),),
        RISING,
        inputs="n9_rising_logits",
    ),
    Mutant(
        "sum-not-rescaled",
        "the running sum keeps the scale of the old maximum",
        ((SOFTMAX, "state[rows + at] * factor", "state[rows + at]"),),
        RISING,
        inputs="n9_rising_logits",
    ),
    Mutant(
        "stale-scores",
        "later tiles leave the scratch tile as it is: the weights of the tile before are weighed again",
        (
            (
                SCORES,
                "    uint first_row = ",
                "    if (TILE > 0u) {\n        return;\n    }\n    uint first_row = ",
            ),
        ),
        SQUARE,
    ),
    Mutant(
        "same-keys-for-every-tile",
        "every dispatch of the scores gets the number of the first tile",
        ((KERNEL, 'values={"TILE": tile}', 'values={"TILE": 0}'),),
        SQUARE,
    ),
    Mutant(
        "values-of-the-first-tile",
        "weights of later tiles meet the first rows of v",
        ((WEIGHTED, "uint key = uint(start + first) + j;", "uint key = uint(first) + j;"),),
        SQUARE,
    ),
    Mutant(
        "every-tile-is-the-first",
        "each tile begins with nothing summed",
        ((KERNEL, '"FIRST": int(tile == g.tiles(shape).start)', '"FIRST": 1'),),
        SQUARE,
    ),
    Mutant(
        "no-tile-is-the-first",
        "the first tile adds to what lay in the scratch buffers",
        ((KERNEL, '"FIRST": int(tile == g.tiles(shape).start)', '"FIRST": 0'),),
        SQUARE,
        unwritten=True,  # the pattern of scratch buffers is that of outputs, a NaN
    ),
    Mutant(
        "padding-has-weight",
        "keys past the end, in the word that holds the last one, count as logits of 0",
        ((SCORES, MASKED, "s{{ r }}.{{ c }}"),),
        PARTIAL,
        inputs="n7_logit_minus_50",
    ),
    Mutant(
        "last-word-dropped",
        "a word of weights that the last key does not fill is not reached",
        ((SOFTMAX, "uint(end + 3) / 4u", "uint(end) / 4u"),),
        PARTIAL,
    ),
    Mutant(
        "unwritten-weights",
        "words that a row does not see are read, though no pass made weights of them",
        ((WEIGHTED, "word >= uint(begin) / 4u && int(4u * word) < end", "true"),),
        {"seq": 16, "head_dim": 8, "heads": 2, "causal": True},
        breaks=lambda _, row: row < 12,
    ),
    Mutant(
        "not-normalised",
        "nothing divides by the sum of the weights",
        ((FINISH, "(l == 0.0 ? 0.0 : 1.0 / l)", "(l == 0.0 ? 0.0 : 1.0)"),),
        SQUARE,
    ),
    Mutant(
        "nothing-by-nothing",
        "a row without keys divides by its sum",
        ((FINISH, "l == 0.0 ? 0.0 : 1.0 / l", "1.0 / l"),),
        {"seq": 8, "kv_seq": 4, "head_dim": 8, "heads": 2, "causal": True},
        inputs="n4_rows_without_keys",
        breaks=lambda _, row: row < 4,
    ),
    Mutant(
        "nan-in-the-factor",
        "(-inf) - (-inf) while nothing was visible yet",
        (
            (SOFTMAX, "m == NEG_INF ? 0.0 : m;", "m;"),
            ("_shared/attention.glsl.j2", "s == NEG_INF ? 0.0 : exp(s - shift)", "exp(s - shift)"),
        ),
        {"seq": 5, "kv_seq": 64, "head_dim": 8, "heads": 2},
        inputs="n5_first_tile_masked",
    ),
    Mutant(
        "heads-mixed",
        "every head reads the queries of the first one",
        ((SCORES, "fetch_q(head * uint(SEQ) + row, word)", "fetch_q(row, word)"),),
        SQUARE,
        breaks=lambda head, _: head > 0,
    ),
    Mutant(
        "values-of-other-heads",
        "grouped heads take turns in v, and not in k",
        ((WEIGHTED, "kv_row(head / GROUP, key)", "kv_row(head % {{ kv_heads }}u, key)"),),
        SQUARE,
        breaks=lambda head, _: head in (1, 2),
    ),
    Mutant(
        "columns-of-the-first-block",
        "the second block of output columns repeats the first",
        ((WEIGHTED, "key), first_unit + i)", "key), i)"),),
        SQUARE,
    ),
    Mutant(
        "accumulator-in-half",
        "the accumulator goes through fp16 between tiles",
        (
            (
                WEIGHTED,
                "acc[at * UNITS + unit] = o{{ r }};",
                "acc[at * UNITS + unit] = vec4(unpackHalf2x16(packHalf2x16(o{{ r }}.xy)),\n"
                "                                      unpackHalf2x16(packHalf2x16(o{{ r }}.zw)));",
            ),
        ),
        SQUARE,
    ),
    Mutant(
        "no-barrier-after-load",
        "chunks of q and k are multiplied while others still load them",
        ((SCORES, LOADED, "        for (uint d = 0u; d < BK; ++d) {"),),
        {"seq": 64, "head_dim": 32, "heads": 2},
        axes=WIDE,
        race=True,
    ),
)
