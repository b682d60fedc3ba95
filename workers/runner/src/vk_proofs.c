/* Proofs of Vulkan's features: small shaders (probes/NAME.comp, compiled to headers by the build)
 * and results that are right to the bit. */
#include <inttypes.h>
#include <string.h>

#include "half.h"
#include "proof.h"
#include "vk_device.h"

#include "probe_cooperative_matrix.h"
#include "probe_float16.h"
#include "probe_pack_half.h"
#include "probe_push16.h"
#include "probe_storage16.h"
#include "probe_subgroup_arithmetic.h"
#include "probe_subgroup_basic.h"
#include "probe_subgroup_shuffle.h"
#include "probe_uniform16.h"

#define LANES 128u /* invocations of the subgroup shaders: what every device offers */
#define PAIRS 16u
#define SIDE 16u /* of the matrices */

#define SHADER(name)                                                                               \
    { .source = probe_##name, .size = sizeof probe_##name }

static bool prove_pack_half(struct device *d, struct evidence *evidence, struct failure *failure) {
    (void)evidence;
    return proof_pack_half(d, probe_pack_half, sizeof probe_pack_half, NULL, failure);
}

static bool prove_timer(struct device *d, struct evidence *evidence, struct failure *failure) {
    (void)evidence;
    return proof_timer(d, probe_pack_half, sizeof probe_pack_half, failure);
}

static bool prove_storage16(struct device *d, struct evidence *evidence, struct failure *failure) {
    (void)evidence;
    return proof_pack_half(d, probe_storage16, sizeof probe_storage16, NULL, failure);
}

static uint32_t pair(double low, double high) {
    return half_from_double(low) | (uint32_t)half_from_double(high) << 16;
}

static bool is_word(uint32_t got, uint32_t right, size_t at, struct failure *failure) {
    return got == right ||
           fail(failure, FAULT_DRIVER, "word %zu came out as 0x%08" PRIx32 ", not 0x%08" PRIx32, at,
                got, right);
}

static bool prove_float16(struct device *d, struct evidence *evidence, struct failure *failure) {
    uint32_t in[PAIRS], out[PAIRS];
    struct trial trial = {.shader = SHADER(float16),
                          .groups = PAIRS,
                          .in = in,
                          .in_count = PAIRS,
                          .out = out,
                          .out_count = PAIRS};
    (void)evidence;
    for (unsigned i = 0; i < PAIRS; i++) {
        in[i] = pair(i, i + 1.5);
    }
    bool good = proof_run(d, &trial, failure);
    for (unsigned i = 0; good && i < PAIRS; i++) {
        good = is_word(out[i], pair(i * (i + 1.5) + 1, i * (i + 1.5) + 0.5), i, failure);
    }
    return good;
}

/* Reads 16 pairs from a place that is no storage buffer; `stride` words lie between two of them. */
static bool prove_read(struct device *d, struct trial *trial, const uint32_t *words, size_t stride,
                       struct failure *failure) {
    uint32_t out[PAIRS];
    trial->groups = PAIRS;
    trial->out = out;
    trial->out_count = PAIRS;
    bool good = proof_run(d, trial, failure);
    for (size_t i = 0; good && i < PAIRS; i++) {
        uint32_t word = words[i * stride];
        good = is_word(out[i], word >> 16 | word << 16, i, failure);
    }
    return good;
}

static bool prove_uniform16(struct device *d, struct evidence *evidence, struct failure *failure) {
    uint32_t in[4 * PAIRS];
    struct trial trial = {.shader = SHADER(uniform16), .in = in, .in_count = 4 * PAIRS};
    (void)evidence;
    for (unsigned i = 0; i < 4 * PAIRS; i++) {
        in[i] = pair(i + 1, -2.0 * i);
    }
    return prove_read(d, &trial, in, 4, failure);
}

static bool prove_push16(struct device *d, struct evidence *evidence, struct failure *failure) {
    uint32_t in[PAIRS];
    struct trial trial = {.shader = SHADER(push16), .in = in, .in_count = PAIRS};
    (void)evidence;
    trial.shader.value_count = PAIRS;
    for (unsigned i = 0; i < PAIRS; i++) {
        in[i] = pair(i + 1, -2.0 * i);
    }
    return prove_read(d, &trial, in, 1, failure);
}

/* What a shader of `asked` invocations a subgroup (0: any) says of itself, and what it counted. */
static bool count_subgroup(struct device *d, uint32_t asked, uint32_t *said, uint32_t *counted,
                           struct failure *failure) {
    const uint32_t one = 1;
    uint32_t out[3];
    struct trial trial = {.shader = SHADER(subgroup_basic),
                          .groups = 1,
                          .in = &one,
                          .in_count = 1,
                          .out = out,
                          .out_count = 3};
    trial.shader.subgroup = asked;
    if (!proof_run(d, &trial, failure)) {
        return false;
    }
    *said = out[0];
    *counted = out[1];
    return out[2] == LANES ||
           fail(failure, FAULT_DRIVER, "all ballots together count %" PRIu32 " of %u invocations",
                out[2], LANES);
}

static bool prove_basic(struct device *d, struct evidence *evidence, struct failure *failure) {
    uint32_t said = 0;
    return count_subgroup(d, 0, &said, &evidence->subgroup, failure);
}

static bool prove_lanes(struct device *d, struct shader shader, struct failure *failure) {
    uint32_t in[LANES], out[LANES];
    struct trial trial = {
        .shader = shader, .groups = 1, .in = in, .in_count = LANES, .out = out, .out_count = LANES};
    for (unsigned i = 0; i < LANES; i++) {
        in[i] = 1;
    }
    bool good = proof_run(d, &trial, failure);
    for (unsigned i = 0; good && i < LANES; i++) {
        good = is_word(out[i], 1, i, failure);
    }
    return good;
}

static bool prove_arithmetic(struct device *d, struct evidence *evidence, struct failure *failure) {
    (void)evidence;
    return prove_lanes(d, (struct shader)SHADER(subgroup_arithmetic), failure);
}

static bool prove_shuffle(struct device *d, struct evidence *evidence, struct failure *failure) {
    (void)evidence;
    return prove_lanes(d, (struct shader)SHADER(subgroup_shuffle), failure);
}

static bool prove_size(struct device *d, struct evidence *evidence, struct failure *failure) {
    const uint32_t sizes[] = {d->facts.subgroup_min, d->facts.subgroup_max};
    (void)evidence;
    for (int i = 0; i < 2; i++) {
        uint32_t said = 0, counted = 0;
        if (!count_subgroup(d, sizes[i], &said, &counted, failure)) {
            return false;
        }
        if (said != sizes[i] || counted != sizes[i]) {
            return fail(failure, FAULT_DRIVER,
                        "asked for subgroups of %" PRIu32 ", got %" PRIu32 " (it says %" PRIu32 ")",
                        sizes[i], counted, said);
        }
    }
    return true;
}

/* These are declarations; what they do to a kernel shows in the precision probe. */
static bool prove_float_controls(struct device *d, struct evidence *evidence,
                                 struct failure *failure) {
    (void)evidence;
    return d->facts.float_control_count > 0 ||
           fail(failure, FAULT_DRIVER, "the driver declares no float controls");
}

static bool has_shape(const struct device *d, const char *shape) {
    for (size_t i = 0; i < d->facts.matrix_count; i++) {
        if (strcmp(d->facts.matrices[i], shape) == 0) {
            return true;
        }
    }
    return false;
}

static double left(unsigned row, unsigned column) {
    return (double)((row + 3 * column) % 7) - 3;
}

static double right(unsigned row, unsigned column) {
    return (double)((5 * row + column) % 9) - 4;
}

static bool check_product(const uint32_t *out, struct failure *failure) {
    for (unsigned i = 0; i < SIDE * SIDE; i++) {
        double sum = 0; /* of small whole numbers: exact */
        float got;
        for (unsigned k = 0; k < SIDE; k++) {
            sum += left(i / SIDE, k) * right(k, i % SIDE);
        }
        memcpy(&got, &out[i], sizeof got);
        if ((double)got != sum) {
            return fail(failure, FAULT_DRIVER, "element %u of the product is %g, not %g", i,
                        (double)got, sum);
        }
    }
    return true;
}

static bool prove_matrix(struct device *d, struct evidence *evidence, struct failure *failure) {
    static const char shape[] = "16x16x16 f16 f16 f32 f32";
    uint32_t in[SIDE * SIDE], out[SIDE * SIDE];
    struct trial trial = {.shader = SHADER(cooperative_matrix),
                          .groups = 1,
                          .in = in,
                          .in_count = SIDE * SIDE,
                          .out = out,
                          .out_count = SIDE * SIDE};
    (void)evidence;
    trial.shader.constants = &d->facts.subgroup; /* the work group is one subgroup */
    trial.shader.constant_count = 1;
    if (!has_shape(d, shape)) {
        return fail(failure, FAULT_UNSUPPORTED, "lacks %s, the one shape that is tried", shape);
    }
    for (unsigned i = 0; i < SIDE * SIDE / 2; i++) {
        unsigned row = 2 * i / SIDE, column = 2 * i % SIDE;
        in[i] = pair(left(row, column), left(row, column + 1));
        in[SIDE * SIDE / 2 + i] = pair(right(row, column), right(row, column + 1));
    }
    return proof_run(d, &trial, failure) && check_product(out, failure);
}

const struct proof vk_proofs[VK_PROOFS] = {
    {FEATURE_PACK_HALF, NULL, prove_pack_half},
    {FEATURE_TIMER_QUERY, NULL, prove_timer},
    {FEATURE_FLOAT16, "float16", prove_float16},
    {FEATURE_STORAGE16, "storage16", prove_storage16},
    {FEATURE_UNIFORM16, "uniform16", prove_uniform16},
    {FEATURE_PUSH16, "push16", prove_push16},
    {FEATURE_IO16, NULL, NULL},
    {FEATURE_SUBGROUP_BASIC, NULL, prove_basic},
    {FEATURE_SUBGROUP_ARITHMETIC, NULL, prove_arithmetic},
    {FEATURE_SUBGROUP_SHUFFLE, NULL, prove_shuffle},
    {FEATURE_SUBGROUP_SIZE_CONTROL, "subgroup_size_control", prove_size},
    {FEATURE_FLOAT_CONTROLS, NULL, prove_float_controls},
    {FEATURE_COOPERATIVE_MATRIX, "cooperative_matrix,float16,storage16", prove_matrix},
};
