/* A child's open things; see session.h. */
#include "session.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define PROGRAMS_KEPT 16

void session_stage(struct session *s, enum stage stage) {
    int64_t now = clock_ns();
    int before = atomic_load(&s->board->stage);
    if (s->stage_since_ns != 0 && before >= 0 && before < STAGE_COUNT) {
        s->spent_ns[before] += now - s->stage_since_ns;
    }
    s->stage_since_ns = now;
    atomic_store(&s->board->stage, stage);
}

void session_stages_done(struct session *s) {
    memset(s->spent_ns, 0, sizeof s->spent_ns);
    s->stage_since_ns = 0;
}

static void drop_programs(struct session *s) {
    for (size_t i = 0; i < s->program_count; i++) {
        s->device->backend->program_free(s->device, s->programs[i].program);
    }
    free(s->programs);
    s->programs = NULL;
    s->program_count = 0;
}

static void drop_device(struct session *s) {
    if (s->device != NULL) {
        drop_programs(s);
        s->device->backend->close(s->device);
        s->device = NULL;
    }
}

bool session_device(struct session *s, const char *api, bool *opened, struct failure *failure) {
    *opened = false;
    if (s->device != NULL && strcmp(s->device->backend->api, api) == 0) {
        return true;
    }
    session_stage(s, STAGE_CONTEXT);
    drop_device(s);
    /* A job may hold cases of several APIs; only one of them has adapters and features. */
    bool chosen = strcmp(api, s->job->adapter_api) == 0;
    const struct opening opening = {
        .adapter = chosen ? s->job->adapter : NULL,
        .enable = strcmp(api, "vulkan") == 0 ? s->job->enable : NULL,
    };
    s->device = device_open(api, &opening, s->impose, failure);
    *opened = s->device != NULL;
    return *opened;
}

bool session_same_program(const struct job_pass *a, const struct job_pass *b) {
    return strcmp(a->shader, b->shader) == 0 && a->subgroup == b->subgroup &&
           a->binding_count == b->binding_count && a->value_count == b->value_count &&
           a->constant_count == b->constant_count &&
           (a->constant_count == 0 ||
            memcmp(a->constants, b->constants, a->constant_count * sizeof *a->constants) == 0);
}

static struct program *compile(struct session *s, const struct job_pass *pass,
                               const struct blob *source, struct log *log,
                               struct failure *failure) {
    const struct shader shader = {
        .source = source->data,
        .size = source->size,
        .constants = pass->constants,
        .constant_count = pass->constant_count,
        .value_count = pass->value_count,
        .binding_count = pass->binding_count,
        .subgroup = pass->subgroup,
    };
    return s->device->backend->compile(s->device, &shader, log, failure);
}

const struct compiled *session_program(struct session *s, const struct job_pass *pass,
                                       const struct blob *source, struct log *log,
                                       struct failure *failure) {
    for (size_t i = 0; i < s->program_count; i++) {
        if (session_same_program(s->programs[i].pass, pass)) {
            return &s->programs[i];
        }
    }
    struct compiled *programs = realloc(s->programs, (s->program_count + 1) * sizeof *programs);
    if (programs == NULL) {
        (void)fail(failure, FAULT_MEMORY, "out of memory");
        return NULL;
    }
    s->programs = programs;
    int64_t start = clock_ns();
    struct program *program = compile(s, pass, source, log, failure);
    if (program == NULL) {
        return NULL;
    }
    struct compiled *c = &programs[s->program_count++];
    *c = (struct compiled){.pass = pass, .program = program, .compile_ns = clock_ns() - start};
    return c;
}

void session_trim(struct session *s) {
    if (s->program_count > PROGRAMS_KEPT) {
        drop_programs(s);
    }
    blobs_trim(&s->blobs);
}

void session_close(struct session *s) {
    drop_device(s);
    blobs_close(&s->blobs);
    sensors_close(&s->sensors);
}
