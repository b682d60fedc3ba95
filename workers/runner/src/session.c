/* A child's open things; see session.h. */
#include "session.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define PROGRAMS_KEPT 16

void session_stage(struct session *s, enum stage stage) {
    atomic_store(&s->board->stage, stage);
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
    s->device = device_open(api, s->impose, failure);
    *opened = s->device != NULL;
    return *opened;
}

const struct compiled *session_program(struct session *s, const char *shader,
                                       const struct blob *source, struct log *log,
                                       struct failure *failure) {
    for (size_t i = 0; i < s->program_count; i++) {
        if (strcmp(s->programs[i].shader, shader) == 0) {
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
    struct program *program =
        s->device->backend->compile(s->device, source->data, source->size, log, failure);
    if (program == NULL) {
        return NULL;
    }
    struct compiled *c = &programs[s->program_count++];
    *c = (struct compiled){.program = program, .compile_ns = clock_ns() - start};
    memcpy(c->shader, shader, sizeof c->shader);
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
