/* The statements of a job file on passes and outputs; see parser.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parser.h"

static bool find_buffer(struct parser *p, const char *name, uint32_t *index) {
    for (size_t i = 0; i < p->open->buffer_count; i++) {
        if (strcmp(p->open->buffers[i].name, name) == 0) {
            *index = (uint32_t)i;
            return true;
        }
    }
    return parser_bad(p, "%s: no buffer \"%.80s\" was declared above", word(p, 0), name);
}

static struct job_pass *last_pass(const struct parser *p) {
    return &p->open->passes[p->open->pass_count - 1];
}

static bool add_binding(struct parser *p, const char *name) {
    struct job_pass *pass = last_pass(p);
    uint32_t index = 0;
    if (!find_buffer(p, name, &index)) {
        return false;
    }
    if (pass->binding_count == JOB_BINDINGS_MAX) {
        return parser_bad(p, "pass: more than %d buffers", JOB_BINDINGS_MAX);
    }
    pass->bindings[pass->binding_count++] = index;
    return true;
}

bool on_pass(struct parser *p) {
    struct job_pass *passes = parser_grow(p->open->passes, p->open->pass_count, sizeof *passes);
    if (passes == NULL) {
        return parser_bad(p, "out of memory");
    }
    p->open->passes = passes;
    struct job_pass *pass = &passes[p->open->pass_count++];
    *pass = (struct job_pass){.binding_count = 0};
    if (!take_hash(p, 1, pass->shader)) {
        return false;
    }
    for (size_t i = 0; i < 3; i++) {
        static const char *const axes[] = {"pass: GX", "pass: GY", "pass: GZ"};
        uint64_t groups = 0;
        if (!take_number(p, 2 + i, 1, UINT32_MAX, axes[i], &groups)) {
            return false;
        }
        pass->grid[i] = (uint32_t)groups;
    }
    pass->bindings = malloc(JOB_BINDINGS_MAX * sizeof *pass->bindings);
    if (pass->bindings == NULL) {
        return parser_bad(p, "out of memory");
    }
    return take_number(p, 5, 0, UINT32_MAX, "pass: SHARED_BYTES", &pass->shared_bytes) &&
           take_list(p, 6, add_binding);
}

/* The pass that the statement is about: the one above it. */
static bool has_pass(struct parser *p) {
    return p->open->pass_count > 0 || parser_bad(p, "%s: no pass above", word(p, 0));
}

static bool add_number(struct parser *p, const char *item, size_t max, uint32_t *numbers,
                       size_t *count) {
    uint64_t number = 0;
    if (!word_u64(item, 0, UINT32_MAX, &number)) {
        return parser_bad(p, "%s: V%zu: \"%.80s\" is not a whole number from 0 to %" PRIu32,
                          word(p, 0), *count, item, UINT32_MAX);
    }
    if (*count == max) {
        return parser_bad(p, "%s: more than %zu", word(p, 0), max);
    }
    numbers[(*count)++] = (uint32_t)number;
    return true;
}

static bool add_constant(struct parser *p, const char *item) {
    struct job_pass *pass = last_pass(p);
    return add_number(p, item, JOB_CONSTANTS_MAX, pass->constants, &pass->constant_count);
}

static bool add_value(struct parser *p, const char *item) {
    struct job_pass *pass = last_pass(p);
    return add_number(p, item, JOB_VALUES_MAX, pass->values, &pass->value_count);
}

/* Makes room for the numbers that the statement lists; only once for each pass. */
static bool make_numbers(struct parser *p, uint32_t **numbers, size_t max) {
    if (*numbers != NULL) {
        return parser_bad(p, "%s: are given twice for one pass", word(p, 0));
    }
    *numbers = malloc(max * sizeof **numbers);
    return *numbers != NULL || parser_bad(p, "out of memory");
}

bool on_constants(struct parser *p) {
    return has_pass(p) && make_numbers(p, &last_pass(p)->constants, JOB_CONSTANTS_MAX) &&
           take_list(p, 1, add_constant);
}

bool on_values(struct parser *p) {
    return has_pass(p) && make_numbers(p, &last_pass(p)->values, JOB_VALUES_MAX) &&
           take_list(p, 1, add_value);
}

bool on_subgroup(struct parser *p) {
    if (!has_pass(p)) {
        return false;
    }
    struct job_pass *pass = last_pass(p);
    if (pass->subgroup != 0) {
        return parser_bad(p, "subgroup: is given twice for one pass");
    }
    if (!take_unsigned(p, 1, 1024, &pass->subgroup)) {
        return false;
    }
    return (pass->subgroup & (pass->subgroup - 1)) == 0 ||
           parser_bad(p, "subgroup: %u is no power of two", pass->subgroup);
}

bool on_check(struct parser *p) {
    uint32_t index = 0;
    if (!find_buffer(p, word(p, 1), &index)) {
        return false;
    }
    struct job_buffer *b = &p->open->buffers[index];
    if (b->checked) {
        return parser_bad(p, "check: \"%s\" is checked twice", b->name);
    }
    if (b->role != ROLE_OUT && b->role != ROLE_INOUT) {
        return parser_bad(p, "check: \"%s\" is neither out nor inout", b->name);
    }
    double *const bounds[] = {&b->atol, &b->rtol, &b->nmse};
    static const char *const names[] = {"ATOL", "RTOL", "NMSE"};
    for (size_t i = 0; i < 3; i++) {
        if (!word_tolerance(word(p, 3 + i), bounds[i])) {
            return parser_bad(p, "check: %s \"%.80s\" is not a finite number >= 0", names[i],
                              word(p, 3 + i));
        }
    }
    b->checked = true;
    return take_hash(p, 2, b->reference);
}

static bool add_dimension(struct parser *p, const char *item) {
    struct job_buffer *b = p->shaped;
    uint64_t size = 0;
    if (!word_u64(item, 1, b->count, &size)) {
        return parser_bad(p, "shape: D%zu: \"%.80s\" is not a whole number from 1 to %" PRIu64,
                          b->dimension_count, item, b->count);
    }
    if (b->dimension_count == JOB_DIMENSIONS_MAX) {
        return parser_bad(p, "shape: more than %d dimensions", JOB_DIMENSIONS_MAX);
    }
    b->dimensions[b->dimension_count++] = size;
    return true;
}

/* By division, because a product of two dimensions may overflow. */
static bool shape_is_count(const struct job_buffer *b) {
    uint64_t product = 1;
    for (size_t i = 0; i < b->dimension_count; i++) {
        if (b->dimensions[i] > b->count / product) {
            return false;
        }
        product *= b->dimensions[i];
    }
    return product == b->count;
}

bool on_shape(struct parser *p) {
    uint32_t index = 0;
    if (!find_buffer(p, word(p, 1), &index)) {
        return false;
    }
    struct job_buffer *b = &p->open->buffers[index];
    if (!b->checked) {
        return parser_bad(p, "shape: \"%s\" has no check above", b->name);
    }
    if (b->dimension_count > 0) {
        return parser_bad(p, "shape: of \"%s\" is given twice", b->name);
    }
    p->shaped = b;
    if (!take_list(p, 2, add_dimension)) {
        return false;
    }
    return shape_is_count(b) ||
           parser_bad(p, "shape: its product is not the %" PRIu64 " elements of \"%s\"", b->count,
                      b->name);
}

bool on_keep(struct parser *p) {
    static const char *const choices[] = {"always", "failed", NULL};
    uint32_t index = 0;
    int choice = 0;
    if (!find_buffer(p, word(p, 1), &index) || !take_choice(p, 2, choices, &choice)) {
        return false;
    }
    struct job_buffer *b = &p->open->buffers[index];
    if (b->keep != KEEP_NEVER) {
        return parser_bad(p, "keep: \"%s\" is kept twice", b->name);
    }
    if (b->role == ROLE_IN) {
        return parser_bad(p, "keep: \"%s\" is an input", b->name);
    }
    if (choice == 1 && !b->checked) {
        return parser_bad(p, "keep: \"%s\" has no check above that could fail", b->name);
    }
    b->keep = choice == 0 ? KEEP_ALWAYS : KEEP_FAILED;
    return true;
}
