/* The statements of one case in a job file; see parser.h. */
#include "parser.h"

#include <stdlib.h>
#include <string.h>

static bool find_buffer(struct parser *p, const char *name, uint32_t *index) {
    for (size_t i = 0; i < p->open->buffer_count; i++) {
        if (strcmp(p->open->buffers[i].name, name) == 0) {
            *index = (uint32_t)i;
            return true;
        }
    }
    return parser_bad(p, "%s: no buffer \"%.80s\" was declared above", word(p, 0), name);
}

bool on_case(struct parser *p) {
    struct job *job = p->job;
    struct job_case *cases = parser_grow(job->cases, job->case_count, sizeof *cases);
    if (cases == NULL) {
        return parser_bad(p, "out of memory");
    }
    job->cases = cases;
    p->open = &cases[job->case_count++];
    *p->open = (struct job_case){.replays = 1};
    p->seen_case = 0;
    return take_id(p, 1, p->open->id);
}

bool on_api(struct parser *p) {
    return take_id(p, 1, p->open->api);
}

bool on_deadline(struct parser *p) {
    return take_unsigned(p, 1, 86400000, &p->open->deadline_ms);
}

bool on_warmup(struct parser *p) {
    return take_unsigned(p, 0, 100000, &p->open->warmup);
}

bool on_repeats(struct parser *p) {
    return take_unsigned(p, 0, 10000, &p->open->repeats);
}

bool on_replays(struct parser *p) {
    return take_unsigned(p, 1, 100000, &p->open->replays);
}

bool on_buffer(struct parser *p) {
    static const char *const roles[] = {"in", "out", "inout", "scratch", NULL};
    static const char *const dtypes[] = {"f32", "f16", "u32", NULL};
    struct job_buffer b = {.keep = KEEP_NEVER};
    int role = 0, dtype = 0;
    if (!take_id(p, 1, b.name) || !take_choice(p, 2, roles, &role) ||
        !take_choice(p, 3, dtypes, &dtype) ||
        !take_number(p, 4, 1, UINT64_C(1) << 36, "buffer: COUNT", &b.count)) {
        return false;
    }
    b.role = (enum buffer_role)role;
    b.dtype = (enum dtype)dtype;
    for (size_t i = 0; i < p->open->buffer_count; i++) {
        if (strcmp(p->open->buffers[i].name, b.name) == 0) {
            return parser_bad(p, "buffer: \"%s\" is declared twice", b.name);
        }
    }
    bool needs_blob = b.role == ROLE_IN || b.role == ROLE_INOUT;
    if (needs_blob != (p->words.count == 6)) {
        return parser_bad(p, "buffer: role %s %s", roles[role],
                          needs_blob ? "needs a BLOB" : "takes no BLOB");
    }
    if (needs_blob && !take_hash(p, 5, b.blob)) {
        return false;
    }
    struct job_buffer *buffers =
        parser_grow(p->open->buffers, p->open->buffer_count, sizeof *buffers);
    if (buffers == NULL) {
        return parser_bad(p, "out of memory");
    }
    p->open->buffers = buffers;
    buffers[p->open->buffer_count++] = b;
    return true;
}

static bool add_binding(struct parser *p, struct job_pass *pass, const char *name) {
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

static bool add_bindings(struct parser *p, struct job_pass *pass, char *names) {
    pass->bindings = malloc(JOB_BINDINGS_MAX * sizeof *pass->bindings);
    if (pass->bindings == NULL) {
        return parser_bad(p, "out of memory");
    }
    for (char *name = names; name != NULL;) {
        char *comma = strchr(name, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        if (!add_binding(p, pass, name)) {
            return false;
        }
        name = comma == NULL ? NULL : comma + 1;
    }
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
    return take_number(p, 5, 0, UINT32_MAX, "pass: SHARED_BYTES", &pass->shared_bytes) &&
           add_bindings(p, pass, p->words.word[6]);
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

bool on_endcase(struct parser *p) {
    const struct job_case *c = p->open;
    const char *missing = c->api[0] == '\0'      ? "api"
                          : c->deadline_ms == 0  ? "deadline_ms"
                          : c->buffer_count == 0 ? "buffer"
                          : c->pass_count == 0   ? "pass"
                                                 : NULL;
    if (missing != NULL) {
        return parser_bad(p, "endcase: case %s has no \"%s\"", c->id, missing);
    }
    p->open = NULL;
    return true;
}
