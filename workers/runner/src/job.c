/* Loading, freeing and sizes of a job; the statements are read in job_parse.c. */
#include "job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void job_free(struct job *job) {
    if (job == NULL) {
        return;
    }
    for (size_t i = 0; i < job->case_count; i++) {
        struct job_case *c = &job->cases[i];
        for (size_t p = 0; p < c->pass_count; p++) {
            free(c->passes[p].bindings);
            free(c->passes[p].constants);
            free(c->passes[p].values);
        }
        free(c->passes);
        free(c->buffers);
    }
    free(job->cases);
    free(job->dir);
    free(job->blobs);
    free(job->enable);
    free(job);
}

uint64_t job_element_bytes(enum dtype dtype) {
    return dtype == DTYPE_F16 ? 2 : 4;
}

uint64_t job_buffer_bytes(const struct job_buffer *buffer) {
    return (buffer->count * job_element_bytes(buffer->dtype) + 3) / 4 * 4;
}

const char *job_dtype_name(enum dtype dtype) {
    return dtype == DTYPE_F32 ? "f32" : dtype == DTYPE_F16 ? "f16" : "u32";
}

/* Gives the file's text, or NULL with the reason. */
static char *read_file(const char *path, size_t *size, struct job_error *error) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        (void)snprintf(error->text, sizeof error->text, "job.txt: %.300s: %s", path,
                       strerror(errno));
        return NULL;
    }
    char *text = NULL;
    size_t used = 0, room = 0;
    for (;;) {
        if (used == room) {
            room = room == 0 ? 65536 : room * 2;
            char *more = room > 2u * JOB_FILE_MAX ? NULL : realloc(text, room);
            if (more == NULL) {
                (void)snprintf(error->text, sizeof error->text, "job.txt: too large to read");
                break;
            }
            text = more;
        }
        size_t got = fread(text + used, 1, room - used, file);
        used += got;
        if (got == 0) {
            bool bad = ferror(file) != 0;
            (void)fclose(file);
            if (bad) {
                (void)snprintf(error->text, sizeof error->text, "job.txt: read error");
                free(text);
                return NULL;
            }
            *size = used;
            return text;
        }
    }
    (void)fclose(file);
    free(text);
    return NULL;
}

struct job *job_load(const char *dir, struct job_error *error) {
    size_t room = strlen(dir) + sizeof "/job.txt";
    char *path = malloc(room);
    if (path == NULL) {
        (void)snprintf(error->text, sizeof error->text, "job.txt: out of memory");
        return NULL;
    }
    (void)snprintf(path, room, "%s/job.txt", dir);
    size_t size = 0;
    char *text = read_file(path, &size, error);
    free(path);
    struct job *job = text == NULL ? NULL : job_parse(text, size, dir, error);
    free(text);
    return job;
}
