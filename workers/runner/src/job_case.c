/* The statements of one case in a job file, but for its passes and outputs (job_pass.c); see
 * parser.h. */
#include "parser.h"

#include <stdlib.h>
#include <string.h>

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

bool on_warmup_ms(struct parser *p) {
    return take_unsigned(p, 0, 60000, &p->open->warmup_ms);
}

bool on_repeats(struct parser *p) {
    return take_unsigned(p, 0, 10000, &p->open->repeats);
}

bool on_replays(struct parser *p) {
    return take_unsigned(p, 1, 100000, &p->open->replays);
}

bool on_idle_replays(struct parser *p) {
    uint64_t count = 0, rest = 0;
    if (!take_number(p, 1, 0, 100000, "idle_replays: N", &count) ||
        !take_number(p, 2, 0, 3600000, "idle_replays: IDLE_MS", &rest)) {
        return false;
    }
    if (count > 0 && rest == 0) {
        return parser_bad(p, "idle_replays: %u of them need an IDLE_MS above 0", (unsigned)count);
    }
    p->open->idle_replays = (unsigned)count;
    p->open->idle_ms = (unsigned)rest;
    return true;
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
