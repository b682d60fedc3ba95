"""attention_flash_matrix broken on purpose, for the emulation of emulated_matrices: one edit a mutant.

Barriers that the emulation's products stand in for break nothing here and are left out; the two that are
dropped are those between what a lane writes and what another one reads.
"""

from orchestrator.domain.case import AxisValue
from tests.kernels.attention_mutant import Mutant

NAME = "attention_flash_matrix"
TEMPLATE = f"{NAME}/matrix.comp.j2"

Workload = dict[str, AxisValue]
CACHE: Workload = {
    "seq": 17,
    "kv_seq": 18,
    "head_dim": 8,
    "heads": 4,
    "kv_heads": 2,
    "kv_rows": 24,
}
"""Two tiles, the second of which holds two keys, with unused rows behind them; most mutants share it."""
RISING: Workload = {"seq": 8, "kv_seq": 128, "head_dim": 8, "heads": 1}

SEEN = "int(lane / 2u)) - tile - int(lane % 2u) * 8"

MUTANTS = (
    Mutant(
        "output-not-rescaled",
        "the output keeps the scale of the old maximum",
        ((TEMPLATE, "o{{ r }}_{{ n }}[e] *= t[e];", "o{{ r }}_{{ n }}[e] *= 1.0;"),),
        RISING,
        inputs="n9_rising_logits",
    ),
    Mutant(
        "sees-the-next-key",
        "masks of the last tile are one key too far",
        ((TEMPLATE, SEEN, f"{SEEN} + 1"),),
        CACHE,
    ),
    Mutant(
        "ungrouped-heads",
        "query head 1 reads key/value head 1 of its own",
        ((TEMPLATE, "kv_head = head / {{ group }}u", "kv_head = head % {{ kv_heads }}u"),),
        CACHE,
        breaks=lambda head, _: head in (1, 2),
    ),
    Mutant(
        "stale-keys",
        "the second tile meets the first one's K",
        ((TEMPLATE, "fetch_k(kv_head, tile + BC,", "fetch_k(kv_head, tile,"),),
        CACHE,
    ),
    Mutant(
        "last-row-unstored",
        "the last row of the last block is taken for padding",
        ((TEMPLATE, "if (row + {{ 16 * r }} < SEQ)", "if (row + {{ 16 * r }} < SEQ - 1)"),),
        CACHE,
        breaks=lambda _, row: row == 16,
        unwritten=True,
    ),
    Mutant(
        "not-scaled",
        "logits are not divided by √head_dim",
        ((TEMPLATE, "LOG2_SCALE = {{ log2_scale }};", "LOG2_SCALE = 1.44269504;"),),
        CACHE,
    ),
    Mutant(
        "unused-rows-in-the-last-tile",
        "the last tile is filled from unused rows, whose weight of 0 does not undo NaN (N13)",
        (
            (
                TEMPLATE,
                """if (row < {{ "SEQ" if name == "q" else "KV_SEQ" }}""",
                """if (row < {{ "SEQ" if name == "q" else "KV_ROWS" }}""",
            ),
        ),
        CACHE,
    ),
    Mutant(
        "cache-stride-is-kv-seq",
        "the second head is looked for after the first one's keys, among unused rows",
        ((TEMPLATE, "kv_head * uint({{ kv_rows }}) + key", "kv_head * uint(KV_SEQ) + key"),),
        CACHE,
        breaks=lambda head, _: head >= 2,
    ),
    Mutant(
        "no-barrier-before-keys",
        "K is read while other lanes still write it",
        (
            (
                TEMPLATE,
                "= key{{ x }};\n{% endcall %}\n        barrier();\n",
                "= key{{ x }};\n{% endcall %}\n",
            ),
        ),
        CACHE,
        race=True,
    ),
    Mutant(
        "weights-unsettled",
        "weights are read while other lanes still write them",
        (
            (
                TEMPLATE,
                "weights, p_at + {{ 2 * n }}u, P_STRIDE, ROW_MAJOR);\n{% endfor %}\n        settle();\n"
                "{% for n in range(columns) %}\n        LEFT p",
                "weights, p_at + {{ 2 * n }}u, P_STRIDE, ROW_MAJOR);\n{% endfor %}\n"
                "{% for n in range(columns) %}\n        LEFT p",
            ),
        ),
        CACHE,
        race=True,
    ),
)
