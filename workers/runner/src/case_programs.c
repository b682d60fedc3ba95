/* From the shader blobs of a case to its list of dispatches; see case_run.h. */
#include <stdlib.h>
#include <string.h>

#include "case_run.h"

/* True if an earlier pass uses the same program; gives it. */
static bool seen_before(const struct case_run *run, size_t pass, struct program **program) {
    for (size_t i = 0; i < pass; i++) {
        if (session_same_program(&run->spec->passes[i], &run->spec->passes[pass])) {
            *program = run->dispatches[i].program;
            return true;
        }
    }
    return false;
}

static bool compile_new(struct case_run *run, const struct job_pass *pass,
                        struct program **program) {
    struct session *s = run->session;
    struct blob source;
    session_stage(s, STAGE_BUFFERS);
    if (!blobs_get(&s->blobs, pass->shader, &source, run->failure.reason)) {
        run->failure.kind = FAULT_DRIVER;
        return case_fail(run);
    }
    session_stage(s, STAGE_COMPILE);
    size_t known = s->program_count;
    const struct compiled *c = session_program(s, pass, &source, &run->log, &run->failure);
    if (c == NULL) {
        if (run->failure.kind == FAULT_LINK) {
            session_stage(s, STAGE_LINK);
        }
        return case_fail(run);
    }
    run->reused += s->program_count == known ? 1 : 0;
    run->compile_ns[run->compile_count++] = c->compile_ns;
    *program = c->program;
    session_stage(s, STAGE_LINK);
    if (!limits_fit_group(&s->device->limits, c->program->group, run->failure.reason)) {
        run->status = CASE_UNSUPPORTED;
        return false;
    }
    return true;
}

bool case_compile(struct case_run *run) {
    size_t count = run->spec->pass_count;
    run->dispatches = calloc(count, sizeof *run->dispatches);
    run->compile_ns = calloc(count, sizeof *run->compile_ns);
    if (run->dispatches == NULL || run->compile_ns == NULL) {
        return case_no_memory(run);
    }
    for (size_t i = 0; i < count; i++) {
        struct dispatch *d = &run->dispatches[i];
        memcpy(d->grid, run->spec->passes[i].grid, sizeof d->grid);
        d->values = run->spec->passes[i].values;
        d->value_count = run->spec->passes[i].value_count;
        if (!seen_before(run, i, &d->program) &&
            !compile_new(run, &run->spec->passes[i], &d->program)) {
            return false;
        }
    }
    return true;
}
