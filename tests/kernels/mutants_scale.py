"""scale broken on purpose, as ``mutants_image`` breaks images."""

from orchestrator.domain.case import AxisValue
from tests.kernels.mutants_image import ImageMutant

SCALE = "scale/scale.comp.j2"
SLANG = "scale/scale.slang.j2"


def _numbers(count: int, percent: int = 150) -> dict[str, AxisValue]:
    return {"n": count, "percent": percent}


ODD = 131
"""Numbers: 65 words and a half one, one more than a workgroup of 64 takes."""

SCALE_MUTANTS = (
    ImageMutant(
        "scaled_twice",
        "the factor is applied twice",
        (
            (
                SCALE,
                "| (o[i] & kept)",
                "| (o[i] & kept);\n        o[i] = (scaled(o[i]) & ~kept) | (o[i] & kept)",
            ),
        ),
        workload=_numbers(ODD),
        kernel="scale",
    ),
    ImageMutant(
        "surplus_invocations_scale_again",
        "an index beyond the end is clamped to the last word instead of left alone",
        (
            (
                SCALE,
                "    uint i = group * GROUP + gl_LocalInvocationID.x;\n",
                "    uint i = min(group * GROUP + gl_LocalInvocationID.x, uint(WORDS) - 1u);\n",
            ),
        ),
        lambda index, _, __: index >= ODD - 1,
        workload=_numbers(ODD),
        axes={"vector": 1},
        kernel="scale",
    ),
    ImageMutant(
        "last_word_is_left_out",
        "the tail guard ends a word early",
        ((SCALE, "if (i >= uint(WORDS)) {", "if (i >= uint(WORDS) - 1u) {"),),
        lambda index, _, __: index >= ODD - 1,
        workload=_numbers(ODD),
        kernel="scale",
    ),
    ImageMutant(
        "half_word_is_lost",
        "of an odd count the last half is left as it was",
        ((SCALE, "? 0xffff0000u : 0u;", "? 0xffffffffu : 0u;"),),
        lambda index, _, __: index == ODD - 1,
        workload=_numbers(ODD),
        kernel="scale",
    ),
    ImageMutant(
        "halves_change_places",
        "the two halves of a word are stored the other way round",
        ((SCALE, "packHalf2x16(both *", "packHalf2x16(both.yx *"),),
        workload=_numbers(128),
        inputs="ramp",
        kernel="scale",
    ),
    ImageMutant(
        "word_of_a_vector_is_stale",
        "the last word of four is its neighbour's",
        ((SCALE, "scaled_pair(x.w))", "scaled_pair(x.z))"),),
        lambda index, _, __: index % 8 >= 6,
        workload=_numbers(128),
        inputs="ramp",
        kernel="scale",
    ),
    ImageMutant(
        "second_row_of_the_grid",
        "workgroups of the grid's second row begin at its first word again",
        ((SCALE, "gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x", "gl_WorkGroupID.x"),),
        workload=_numbers(32_768 * 64 * 2 + 128),
        axes={"vector": 1},
        inputs="ramp",
        kernel="scale",
    ),
)

SLANG_MUTANTS = (
    ImageMutant(
        "slang_surplus_scales_again",
        "in Slang: an index beyond the end is clamped to the last number",
        (
            (
                SLANG,
                "uint i = group * GROUP + local.x;",
                "uint i = min(group * GROUP + local.x, uint(WORDS) - 1);",
            ),
        ),
        lambda index, _, __: index >= ODD - 1,
        workload=_numbers(ODD),
        axes={"language": "slang", "precision": "fp32", "vector": 1},
        kernel="scale",
    ),
)
"""Where there is Vulkan."""
