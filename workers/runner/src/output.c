/* What is remembered of an output from one sequence to the next, and the file that keeps it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "case_run.h"

static void count_hash(struct output *o, const char *hash) {
    for (size_t i = 0; i < o->hash_count; i++) {
        if (strcmp(o->hashes[i].hash, hash) == 0) {
            o->hashes[i].count++;
            return;
        }
    }
    if (o->hash_count == HASHES_MAX) {
        o->hashes[HASHES_MAX - 1].count++; /* lost count of what is nondeterministic anyway */
        return;
    }
    struct hash_count *fresh = &o->hashes[o->hash_count++];
    memcpy(fresh->hash, hash, sizeof fresh->hash);
    fresh->count = 1;
}

static bool mark_differences(struct case_buffer *b, const uint8_t *data) {
    struct output *o = b->output;
    size_t element = (size_t)job_element_bytes(b->spec->dtype);
    size_t count = b->value_bytes / element;
    if (o->differs == NULL) {
        o->differs = calloc(count / 8 + 1, 1);
        if (o->differs == NULL) {
            return false;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (memcmp(data + i * element, o->first + i * element, element) != 0) {
            o->differs[i / 8] |= (uint8_t)(1u << (i % 8));
        }
    }
    return true;
}

bool output_note(struct case_buffer *b, const uint8_t *data) {
    struct output *o = b->output;
    char hash[SHA256_HEX_SIZE];
    if (o->first != NULL && memcmp(o->first, data, b->value_bytes) == 0) {
        o->hashes[0].count++; /* the usual case, without hashing again */
        return true;
    }
    sha256_of(data, b->value_bytes, hash);
    count_hash(o, hash);
    if (o->first != NULL) {
        return mark_differences(b, data);
    }
    o->first = malloc(b->value_bytes);
    if (o->first == NULL) {
        return false;
    }
    memcpy(o->first, data, b->value_bytes);
    return true;
}

static bool write_file(const char *path, const struct case_buffer *b) {
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        return false;
    }
    bool good = fwrite(b->output->first, 1, b->value_bytes, file) == b->value_bytes;
    int error = errno;
    bool closed = fclose(file) == 0;
    errno = good ? errno : error;
    return good && closed;
}

void output_keep(struct case_buffer *b, const struct job *job, const struct job_case *c,
                 bool failed) {
    struct output *o = b->output;
    if (o->first == NULL || b->spec->keep == KEEP_NEVER ||
        (b->spec->keep == KEEP_FAILED && !failed)) {
        return;
    }
    size_t room = strlen(job->dir) + 2 * JOB_ID_SIZE + sizeof "/tensors/..bin";
    char *path = malloc(room);
    if (path == NULL) {
        (void)snprintf(o->keep_error, sizeof o->keep_error, "out of memory");
        return;
    }
    (void)snprintf(path, room, "%s/tensors", job->dir);
    (void)mkdir(path, 0777); /* if it fails, so does fopen, with the reason */
    (void)snprintf(path, room, "%s/tensors/%s.%s.bin", job->dir, c->id, b->spec->name);
    o->kept = write_file(path, b);
    if (!o->kept) {
        (void)snprintf(o->keep_error, sizeof o->keep_error, "%s", strerror(errno));
    }
    free(path);
}

void output_free(struct output *o) {
    free(o->first);
    free(o->differs);
    free(o);
}
