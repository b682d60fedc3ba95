/* The SPIR-V reader, on modules written by hand and on every way to spoil one. */
#include <stdint.h>

#include "check.h"
#include "spirv.h"

#define OP(code, words) ((uint32_t)(words) << 16 | (code))
#define MAIN 0x6e69616du, 0u

/* A compute shader with storage buffers at bindings 0 and 2, LocalSize 8×4×2, that does nothing. */
static const uint32_t plain[] = {
    0x07230203, 0x10300, 0,          20,        0,         OP(17, 2), 1, /* OpCapability Shader */
    OP(14, 3),  0,       1,                                              /* OpMemoryModel */
    OP(15, 5),  5,       1,          MAIN,                    /* OpEntryPoint GLCompute %1 "main" */
    OP(16, 6),  1,       17,         8,         4,         2, /* OpExecutionMode %1 LocalSize */
    OP(71, 3),  7,       2,                                   /* OpDecorate %7 Block */
    OP(71, 4),  9,       34,         0,                       /* DescriptorSet */
    OP(71, 4),  9,       33,         0,                       /* Binding */
    OP(71, 4),  10,      33,         2,         OP(19, 2), 2, /* OpTypeVoid */
    OP(33, 3),  3,       2,                                   /* OpTypeFunction */
    OP(21, 4),  4,       32,         0,                       /* OpTypeInt */
    OP(30, 3),  7,       4,                                   /* OpTypeStruct */
    OP(32, 4),  8,       12,         7,                       /* OpTypePointer StorageBuffer */
    OP(59, 4),  8,       9,          12,                      /* OpVariable */
    OP(59, 4),  8,       10,         12,        OP(54, 5), 2,         1, 0, 3, /* OpFunction */
    OP(248, 2), 11,      OP(253, 1), OP(56, 1),
};
#define PLAIN_WORDS (sizeof plain / sizeof plain[0])
#define MODE_AT 15 /* word of OpExecutionMode */
#define BODY_AT (PLAIN_WORDS - 9)

static char reason[SPIRV_REASON_SIZE];
static struct spirv_facts facts;

static bool reads(const uint32_t *words, size_t count) {
    static const uint32_t constants[] = {64, 2, 1};
    return spirv_read(words, count * 4, constants, 3, &facts, reason);
}

/* `plain` with words put in before word `at`, or in place of `drop` words there. */
static bool changed(size_t at, size_t drop, const uint32_t *words, size_t count) {
    uint32_t module[256];
    memcpy(module, plain, at * 4);
    memcpy(module + at, words, count * 4);
    memcpy(module + at + count, plain + at + drop, (PLAIN_WORDS - at - drop) * 4);
    return reads(module, PLAIN_WORDS + count - drop);
}

#define CHANGED(at, drop, ...)                                                                     \
    changed(at, drop, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

static void a_plain_module(void) {
    CHECK(reads(plain, PLAIN_WORDS));
    CHECK(facts.group[0] == 8 && facts.group[1] == 4 && facts.group[2] == 2);
    CHECK(facts.binding_count == 3 && facts.uniforms == 0 && !facts.pushes);
    for (int i = 0; i < FEATURE_COUNT; i++) {
        CHECK(!facts.needs.has[i]);
    }
}

static void sizes_from_constants(void) {
    /* WorkgroupSize: %15 = (spec constant 0, plain constant 5, spec constant 7 without a value) */
    CHECK(CHANGED(BODY_AT, 0, OP(71, 4), 15, 11, 25, OP(71, 4), 12, 1, 0, OP(71, 4), 14, 1, 7,
                  OP(50, 4), 4, 12, 1, OP(43, 4), 4, 13, 5, OP(50, 4), 4, 14, 3, OP(51, 6), 4, 15,
                  12, 13, 14));
    CHECK(facts.group[0] == 64 && facts.group[1] == 5 && facts.group[2] == 3);
    /* LocalSizeId takes the place of LocalSize. */
    CHECK(CHANGED(MODE_AT, 6, OP(331, 6), 1, 38, 12, 12, 13, OP(71, 4), 13, 1, 1, OP(43, 4), 4, 12,
                  16, OP(50, 4), 4, 13, 9));
    CHECK(facts.group[0] == 16 && facts.group[1] == 16 && facts.group[2] == 2);
    CHECK(!CHANGED(MODE_AT, 6, OP(331, 6), 1, 38, 12, 12, 13, OP(43, 4), 4, 12, 16));
    CHECK_TEXT(reason, "the work group size along z is no plain constant");
    CHECK(!CHANGED(MODE_AT, 6, OP(331, 6), 1, 38, 4000000000u, 12, 13));
}

static void what_a_module_needs(void) {
    CHECK(CHANGED(5, 0, OP(17, 2), 9, OP(17, 2), 4433, OP(17, 2), 6022, OP(17, 2), 61));
    CHECK(facts.needs.has[FEATURE_FLOAT16] && facts.needs.has[FEATURE_STORAGE16]);
    CHECK(facts.needs.has[FEATURE_COOPERATIVE_MATRIX] && facts.needs.has[FEATURE_SUBGROUP_BASIC]);
    CHECK(!facts.needs.has[FEATURE_UNIFORM16] && !facts.needs.has[FEATURE_PUSH16]);
    CHECK(facts.subgroup_operations == 1);
    for (uint32_t capability = 61; capability <= 68; capability++) { /* basic, vote … quad */
        CHECK(CHANGED(5, 0, OP(17, 2), capability));
        CHECK(facts.subgroup_operations == 1u << (capability - 61));
        CHECK(facts.needs.has[FEATURE_SUBGROUP_ARITHMETIC] == (capability == 63));
        CHECK(facts.needs.has[FEATURE_SUBGROUP_SHUFFLE] == (capability == 65));
        CHECK(facts.needs.has[FEATURE_SUBGROUP_BASIC] == (capability != 63 && capability != 65));
    }
}

static void kinds_of_buffers(void) {
    /* a uniform buffer at binding 1, and push constants: the structure %7 of one number */
    CHECK(CHANGED(BODY_AT, 0, OP(71, 4), 12, 33, 1, OP(32, 4), 13, 2, 7, OP(59, 4), 13, 12, 2,
                  OP(32, 4), 14, 9, 7, OP(59, 4), 14, 15, 9));
    CHECK(facts.uniforms == 2 && facts.pushes && facts.binding_count == 3);
    CHECK(facts.push_bytes == 4);
    /* the storage buffers of Vulkan 1.0: class Uniform, decorated BufferBlock */
    CHECK(CHANGED(BODY_AT, 0, OP(71, 3), 7, 3, OP(71, 4), 12, 33, 1, OP(32, 4), 13, 2, 7, OP(59, 4),
                  13, 12, 2));
    CHECK(facts.uniforms == 0);
    CHECK(!CHANGED(BODY_AT, 0, OP(71, 4), 12, 33, 64));
    CHECK_TEXT(reason, "binding 64 is beyond the 64 there are");
    CHECK(!CHANGED(BODY_AT, 0, OP(71, 4), 12, 34, 1));
    CHECK_TEXT(reason, "descriptor set 1: only 0 is bound");
}

#define MEMBER(structure, member, offset) OP(72, 5), structure, member, 35, offset
#define PUSHED(type) OP(32, 4), 18, 9, type, OP(59, 4), 18, 19, 9 /* pointer and variable */

static void sizes_of_push_constants(void) {
    /* struct { uint a; float b[3]; vec2 c; } with members in any order, the last one at 16 */
    CHECK(CHANGED(BODY_AT, 0, MEMBER(12, 2, 16), MEMBER(12, 0, 0), MEMBER(12, 1, 4), OP(71, 4), 13,
                  6, 4, OP(22, 3), 14, 32, OP(43, 4), 4, 15, 3, OP(28, 4), 13, 14, 15, OP(23, 4),
                  16, 14, 2, OP(30, 5), 12, 4, 13, 16, PUSHED(12)));
    CHECK(facts.pushes && facts.push_bytes == 24);
    /* 16 pairs of 16-bit floats */
    CHECK(CHANGED(BODY_AT, 0, MEMBER(12, 0, 0), OP(71, 4), 13, 6, 4, OP(22, 3), 14, 16, OP(23, 4),
                  16, 14, 2, OP(43, 4), 4, 15, 16, OP(28, 4), 13, 16, 15, OP(30, 3), 12, 13,
                  PUSHED(12)));
    CHECK(facts.push_bytes == 64);
    /* a matrix, whose stride nobody looks up; no type at all; a member that is not there */
    CHECK(!CHANGED(BODY_AT, 0, OP(22, 3), 14, 32, OP(23, 4), 16, 14, 2, OP(24, 4), 13, 16, 2,
                   OP(30, 3), 12, 13, PUSHED(12)));
    CHECK_TEXT(reason, "values that are no numbers, or no structure of them");
    CHECK(!CHANGED(BODY_AT, 0, PUSHED(17)));
    CHECK(!CHANGED(BODY_AT, 0, MEMBER(12, UINT32_MAX, 8), OP(30, 3), 12, 4, PUSHED(12)));
    /* larger than anything */
    CHECK(!CHANGED(BODY_AT, 0, OP(71, 4), 13, 6, UINT32_MAX, OP(43, 4), 4, 15, UINT32_MAX,
                   OP(28, 4), 13, 4, 15, OP(30, 3), 12, 13, PUSHED(12)));
}

static void no_module_at_all(void) {
    static const uint32_t text[] = {0x72657623, 0, 0, 5, 0, OP(17, 2), 1};
    static const uint32_t swapped[] = {0x03022307, 0, 0, 5, 0, OP(17, 2), 1};
    uint32_t bound[PLAIN_WORDS];
    CHECK(!reads(text, 7));
    CHECK_TEXT(reason, "no SPIR-V: it begins with 0x72657623, not 0x07230203");
    CHECK(!reads(swapped, 7));
    CHECK(!reads(plain, 0) && !reads(plain, 5));
    CHECK(!spirv_read(plain, sizeof plain - 1, NULL, 0, &facts, reason));
    memcpy(bound, plain, sizeof plain);
    bound[3] = UINT32_MAX;
    CHECK(!reads(bound, PLAIN_WORDS));
    CHECK_TEXT(reason, "a bound of 4294967295 ids, 1 to 4194303 are possible");
    bound[3] = 0;
    CHECK(!reads(bound, PLAIN_WORDS));
}

static void no_entry_point(void) {
    CHECK(!CHANGED(10, 5, OP(15, 5), 4, 1, MAIN)); /* a fragment shader */
    CHECK_TEXT(reason, "no compute entry point \"main\"");
    CHECK(!CHANGED(10, 5, OP(15, 5), 5, 1, 0x6e69616du, 0x32)); /* "main2" */
    CHECK(!CHANGED(MODE_AT, 6, OP(16, 3), 1, 18));
    CHECK_TEXT(reason, "the entry point has no work group size");
}

static void truncated_anywhere(void) {
    for (size_t count = 0; count < PLAIN_WORDS; count++) {
        uint32_t *exact = malloc(count * 4 + 1); /* a read past the end shows under ASan */
        CHECK(exact != NULL);
        memcpy(exact, plain, count * 4);
        bool good = reads(exact, count);
        CHECK(!good || count <= BODY_AT);
        free(exact);
    }
    CHECK(!reads(plain, PLAIN_WORDS - 1));
    CHECK_TEXT(reason, "it ends within a function");
}

/* Every word in turn becomes something hostile; nothing may crash, whatever the answer. */
static void hostile_words(void) {
    static const uint32_t evil[] = {0,          1,          0xffffffff, 0xffff0047,
                                    0x00010047, 0x0002003b, 0x00040020, 0x0001ffff};
    for (size_t at = 0; at < PLAIN_WORDS; at++) {
        for (size_t i = 0; i < sizeof evil / sizeof evil[0]; i++) {
            uint32_t module[PLAIN_WORDS];
            memcpy(module, plain, sizeof plain);
            module[at] = evil[i];
            (void)reads(module, PLAIN_WORDS);
        }
    }
    CHECK(!CHANGED(5, 0, 0u));
    CHECK_TEXT(reason, "word 5: an instruction of 0 words, and 65 are left");
}

int main(void) {
    a_plain_module();
    sizes_from_constants();
    what_a_module_needs();
    kinds_of_buffers();
    sizes_of_push_constants();
    no_module_at_all();
    no_entry_point();
    truncated_anywhere();
    hostile_words();
    return 0;
}
