/* A bounds-checked reader of SPIR-V; see spirv.h. */
#include "spirv.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x07230203u
#define HEADER_WORDS 5u
#define BOUND_MAX 4194303u /* 2.17, Universal Limits */

/* 3.49, Instructions; 3.6 and 3.20 to 3.31 for their operands */
enum {
    OP_ENTRY_POINT = 15,
    OP_EXECUTION_MODE = 16,
    OP_CAPABILITY = 17,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_VECTOR = 23,
    OP_TYPE_ARRAY = 28,
    OP_TYPE_STRUCT = 30,
    OP_TYPE_POINTER = 32,
    OP_CONSTANT = 43,
    OP_CONSTANT_COMPOSITE = 44,
    OP_SPEC_CONSTANT = 50,
    OP_SPEC_CONSTANT_COMPOSITE = 51,
    OP_FUNCTION = 54,
    OP_FUNCTION_END = 56,
    OP_VARIABLE = 59,
    OP_DECORATE = 71,
    OP_MEMBER_DECORATE = 72,
    OP_EXECUTION_MODE_ID = 331,
    MODEL_GL_COMPUTE = 5,
    MODE_LOCAL_SIZE = 17,
    MODE_LOCAL_SIZE_ID = 38,
    CLASS_UNIFORM = 2,
    CLASS_PUSH_CONSTANT = 9,
    DECORATION_SPEC_ID = 1,
    DECORATION_BUFFER_BLOCK = 3,
    DECORATION_ARRAY_STRIDE = 6,
    DECORATION_BUILT_IN = 11,
    DECORATION_BINDING = 33,
    DECORATION_DESCRIPTOR_SET = 34,
    DECORATION_OFFSET = 35,
    BUILT_IN_WORKGROUP_SIZE = 25,
    GROUP_NON_UNIFORM = 61, /* the first of the capabilities of subgroups, and the last */
    GROUP_NON_UNIFORM_QUAD = 68
};

static const struct {
    uint32_t capability;
    enum feature feature;
} needs[] = {
    {9, FEATURE_FLOAT16},
    {4433, FEATURE_STORAGE16},
    {4434, FEATURE_UNIFORM16},
    {4435, FEATURE_PUSH16},
    {4436, FEATURE_IO16},
    {61, FEATURE_SUBGROUP_BASIC},
    {62, FEATURE_SUBGROUP_BASIC}, /* vote */
    {63, FEATURE_SUBGROUP_ARITHMETIC},
    {64, FEATURE_SUBGROUP_BASIC}, /* ballot */
    {65, FEATURE_SUBGROUP_SHUFFLE},
    {66, FEATURE_SUBGROUP_BASIC}, /* shuffle relative */
    {67, FEATURE_SUBGROUP_BASIC}, /* clustered */
    {68, FEATURE_SUBGROUP_BASIC}, /* quad */
    {4464, FEATURE_FLOAT_CONTROLS},
    {4465, FEATURE_FLOAT_CONTROLS},
    {4466, FEATURE_FLOAT_CONTROLS},
    {4467, FEATURE_FLOAT_CONTROLS},
    {4468, FEATURE_FLOAT_CONTROLS},
    {6022, FEATURE_COOPERATIVE_MATRIX},
};

/* What is known of a result id. */
struct id {
    uint32_t value;         /* of a constant */
    uint32_t parts[3];      /* ids of a constant vector's parts */
    uint32_t pointee;       /* of a pointer type */
    uint64_t bytes;         /* of a type; 0: not known */
    uint32_t stride;        /* of an array type */
    uint32_t last, offset;  /* the member of a structure that lies furthest, and where */
    uint32_t spec, binding; /* plus one; 0: not decorated so */
    bool is_constant, is_vector, is_buffer_block;
};

struct reader {
    const uint32_t *words;
    const uint32_t *constants;
    size_t constant_count;
    struct id *ids;
    uint32_t bound;
    uint32_t entry;          /* id of the function of main; 0: not seen */
    uint32_t group_ids[3];   /* from LocalSizeId */
    uint32_t group_constant; /* id of the constant that is WorkgroupSize; 0: none */
    bool has_size;
    bool in_function;
    struct spirv_facts *facts;
    char *reason;
};

/* One instruction: `args` are the words after the first. */
struct op {
    uint32_t code, count;
    const uint32_t *args;
};

static bool __attribute__((format(printf, 2, 3))) refuse(char *reason, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(reason, SPIRV_REASON_SIZE, format, args);
    va_end(args);
    return false;
}

static struct id *id_of(const struct reader *r, uint32_t id) {
    return id > 0 && id < r->bound ? &r->ids[id] : NULL;
}

static void note_capability(struct reader *r, uint32_t capability) {
    if (capability >= GROUP_NON_UNIFORM && capability <= GROUP_NON_UNIFORM_QUAD) {
        r->facts->subgroup_operations |= UINT32_C(1) << (capability - GROUP_NON_UNIFORM);
    }
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        if (needs[i].capability == capability) {
            r->facts->needs.has[needs[i].feature] = true;
        }
    }
}

/* Strings are packed little-endian and end with a NUL within a word. */
static bool is_main(const struct op *op) {
    static const uint32_t name = 0x6e69616du; /* "main" */
    return op->count >= 4 && op->args[2] == name && (op->args[3] & 0xffu) == 0;
}

static void note_mode(struct reader *r, const struct op *op) {
    if (op->count < 5 || op->args[0] != r->entry || r->entry == 0) {
        return;
    }
    if (op->code == OP_EXECUTION_MODE && op->args[1] == MODE_LOCAL_SIZE) {
        memcpy(r->facts->group, op->args + 2, sizeof r->facts->group);
        r->has_size = true;
    }
    if (op->code == OP_EXECUTION_MODE_ID && op->args[1] == MODE_LOCAL_SIZE_ID) {
        memcpy(r->group_ids, op->args + 2, sizeof r->group_ids);
        r->has_size = true;
    }
}

static bool note_decoration(struct reader *r, const struct op *op) {
    struct id *target = op->count >= 2 ? id_of(r, op->args[0]) : NULL;
    uint32_t value = op->count >= 3 ? op->args[2] : 0;
    if (target == NULL) {
        return refuse(r->reason, "a decoration without a target");
    }
    switch (op->args[1]) {
    case DECORATION_SPEC_ID:
        target->spec = value == UINT32_MAX ? 0 : value + 1;
        return true;
    case DECORATION_BUFFER_BLOCK:
        target->is_buffer_block = true;
        return true;
    case DECORATION_BUILT_IN:
        r->group_constant = value == BUILT_IN_WORKGROUP_SIZE ? op->args[0] : r->group_constant;
        return true;
    case DECORATION_BINDING:
        if (value >= SPIRV_BINDINGS_MAX) {
            return refuse(r->reason, "binding %" PRIu32 " is beyond the %d there are", value,
                          SPIRV_BINDINGS_MAX);
        }
        target->binding = value + 1;
        return true;
    case DECORATION_DESCRIPTOR_SET:
        return value == 0 ||
               refuse(r->reason, "descriptor set %" PRIu32 ": only 0 is bound", value);
    case DECORATION_ARRAY_STRIDE:
        target->stride = value;
        return true;
    default:
        return true;
    }
}

static void note_member(struct reader *r, const struct op *op) {
    struct id *target = op->count >= 4 ? id_of(r, op->args[0]) : NULL;
    if (target != NULL && op->args[2] == DECORATION_OFFSET && op->args[3] >= target->offset) {
        target->last = op->args[1];
        target->offset = op->args[3];
    }
}

/* Sizes of what push constants are made of: numbers, vectors, arrays and structures of them. The
 * parts of a type come before it. */
static void note_type(struct reader *r, const struct op *op) {
    struct id *type = op->count >= 2 ? id_of(r, op->args[0]) : NULL;
    if (type == NULL) {
        return;
    }
    uint32_t first = op->args[1], second = op->count >= 3 ? op->args[2] : 0;
    const struct id *part = NULL;
    switch (op->code) {
    case OP_TYPE_STRUCT:
        part = type->last < op->count - 1 ? id_of(r, op->args[1 + type->last]) : NULL;
        type->bytes = part == NULL || part->bytes == 0 ? 0 : type->offset + part->bytes;
        return;
    case OP_TYPE_ARRAY:
        part = id_of(r, second); /* the length */
        type->bytes = part == NULL ? 0 : (uint64_t)type->stride * part->value;
        return;
    case OP_TYPE_VECTOR:
        part = id_of(r, first);
        type->bytes = part == NULL ? 0 : part->bytes * second;
        return;
    default: /* a number of so many bits */
        type->bytes = first / 8;
        return;
    }
}

static bool note_push(struct reader *r, const struct id *block) {
    r->facts->pushes = true;
    if (block == NULL || block->bytes == 0 || block->bytes > UINT32_MAX) {
        return refuse(r->reason, "values that are no numbers, or no structure of them");
    }
    r->facts->push_bytes = (uint32_t)block->bytes;
    return true;
}

static void note_constant(struct reader *r, const struct op *op) {
    struct id *id = op->count >= 3 ? id_of(r, op->args[1]) : NULL;
    if (id == NULL) {
        return;
    }
    id->is_constant = true;
    id->value = op->args[2];
    if (op->code == OP_SPEC_CONSTANT && id->spec > 0 && id->spec <= r->constant_count) {
        id->value = r->constants[id->spec - 1];
    }
}

static void note_vector(struct reader *r, const struct op *op) {
    struct id *id = op->count == 5 ? id_of(r, op->args[1]) : NULL;
    if (id != NULL) {
        id->is_vector = true;
        memcpy(id->parts, op->args + 2, sizeof id->parts);
    }
}

static bool note_variable(struct reader *r, const struct op *op) {
    const struct id *type = op->count >= 3 ? id_of(r, op->args[0]) : NULL;
    const struct id *variable = op->count >= 3 ? id_of(r, op->args[1]) : NULL;
    if (type == NULL || variable == NULL) {
        return true;
    }
    if (op->args[2] == CLASS_PUSH_CONSTANT) {
        return note_push(r, id_of(r, type->pointee));
    }
    if (variable->binding == 0) {
        return true;
    }
    size_t binding = variable->binding - 1;
    const struct id *block = id_of(r, type->pointee);
    if (op->args[2] == CLASS_UNIFORM && (block == NULL || !block->is_buffer_block)) {
        r->facts->uniforms |= UINT64_C(1) << binding;
    }
    if (r->facts->binding_count <= binding) {
        r->facts->binding_count = binding + 1;
    }
    return true;
}

static bool note(struct reader *r, const struct op *op) {
    struct id *id = NULL;
    switch (op->code) {
    case OP_CAPABILITY:
        if (op->count >= 1) {
            note_capability(r, op->args[0]);
        }
        return true;
    case OP_ENTRY_POINT:
        if (is_main(op) && op->args[0] == MODEL_GL_COMPUTE) {
            r->entry = op->args[1];
        }
        return true;
    case OP_EXECUTION_MODE:
    case OP_EXECUTION_MODE_ID:
        note_mode(r, op);
        return true;
    case OP_DECORATE:
        return note_decoration(r, op);
    case OP_MEMBER_DECORATE:
        note_member(r, op);
        return true;
    case OP_TYPE_INT:
    case OP_TYPE_FLOAT:
    case OP_TYPE_VECTOR:
    case OP_TYPE_ARRAY:
    case OP_TYPE_STRUCT:
        note_type(r, op);
        return true;
    case OP_TYPE_POINTER:
        id = op->count >= 3 ? id_of(r, op->args[0]) : NULL;
        if (id != NULL) {
            id->pointee = op->args[2];
        }
        return true;
    case OP_CONSTANT:
    case OP_SPEC_CONSTANT:
        note_constant(r, op);
        return true;
    case OP_CONSTANT_COMPOSITE:
    case OP_SPEC_CONSTANT_COMPOSITE:
        note_vector(r, op);
        return true;
    case OP_FUNCTION:
    case OP_FUNCTION_END:
        r->in_function = op->code == OP_FUNCTION;
        return true;
    case OP_VARIABLE:
        return note_variable(r, op);
    default:
        return true;
    }
}

static bool read_all(struct reader *r, size_t count) {
    for (size_t at = HEADER_WORDS; at < count;) {
        uint32_t first = r->words[at], length = first >> 16;
        if (length == 0 || length > count - at) {
            return refuse(r->reason,
                          "word %zu: an instruction of %" PRIu32 " words, and %zu are left", at,
                          length, count - at);
        }
        const struct op op = {
            .code = first & 0xffffu, .count = length - 1, .args = r->words + at + 1};
        if (!note(r, &op)) {
            return false;
        }
        at += length;
    }
    return !r->in_function || refuse(r->reason, "it ends within a function");
}

/* The work group size is the constant decorated WorkgroupSize if there is one, else LocalSizeId,
 * else LocalSize (Vulkan, "WorkgroupSize"). */
static bool find_size(struct reader *r) {
    const struct id *vector = id_of(r, r->group_constant);
    const uint32_t *ids = vector != NULL && vector->is_vector ? vector->parts : r->group_ids;
    if (r->entry == 0) {
        return refuse(r->reason, "no compute entry point \"main\"");
    }
    if (ids[0] != 0) {
        for (int axis = 0; axis < 3; axis++) {
            const struct id *part = id_of(r, ids[axis]);
            if (part == NULL || !part->is_constant) {
                return refuse(r->reason, "the work group size along %c is no plain constant",
                              "xyz"[axis]);
            }
            r->facts->group[axis] = part->value;
        }
        return true;
    }
    return r->has_size || refuse(r->reason, "the entry point has no work group size");
}

bool spirv_read(const uint32_t *words, size_t size_bytes, const uint32_t *constants,
                size_t constant_count, struct spirv_facts *facts, char reason[SPIRV_REASON_SIZE]) {
    *facts = (struct spirv_facts){.pushes = false};
    if (size_bytes % 4 != 0 || size_bytes / 4 <= HEADER_WORDS) {
        return refuse(reason, "%zu bytes are no SPIR-V module", size_bytes);
    }
    if (words[0] != MAGIC) {
        return refuse(reason, "no SPIR-V: it begins with 0x%08" PRIx32 ", not 0x%08x", words[0],
                      MAGIC);
    }
    if (words[3] == 0 || words[3] > BOUND_MAX) {
        return refuse(reason, "a bound of %" PRIu32 " ids, 1 to %u are possible", words[3],
                      BOUND_MAX);
    }
    struct reader r = {.words = words,
                       .constants = constants,
                       .constant_count = constant_count,
                       .bound = words[3],
                       .ids = calloc(words[3], sizeof *r.ids),
                       .facts = facts,
                       .reason = reason};
    if (r.ids == NULL) {
        return refuse(reason, "out of memory for %" PRIu32 " ids", words[3]);
    }
    bool good = read_all(&r, size_bytes / 4) && find_size(&r);
    free(r.ids);
    return good;
}
