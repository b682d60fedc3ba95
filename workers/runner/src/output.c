/* What is remembered of an output from one sequence to the next, and the file that keeps it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "case_run.h"

static void count_one(struct hash_count *h, bool idle) {
    h->count++;
    h->idle += idle ? 1 : 0;
}

/* Each execution is counted once, and no hash is credited with another's: beyond HASHES_MAX
 * results they share an entry of their own. */
static void count_hash(struct output *o, const char *hash, bool idle) {
    size_t i = 0;
    while (i < o->hash_count && i < HASHES_MAX && strcmp(o->hashes[i].hash, hash) != 0) {
        i++;
    }
    if (i == o->hash_count) {
        (void)snprintf(o->hashes[i].hash, sizeof o->hashes[i].hash, "%s",
                       i == HASHES_MAX ? "others" : hash);
        o->hash_count++;
    }
    count_one(&o->hashes[i], idle);
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

bool output_note(struct case_buffer *b, const uint8_t *data, bool idle) {
    struct output *o = b->output;
    char hash[SHA256_HEX_SIZE];
    if (o->first != NULL && memcmp(o->first, data, b->value_bytes) == 0) {
        count_one(&o->hashes[0], idle); /* the usual case, without hashing again */
        return true;
    }
    sha256_of(data, b->value_bytes, hash);
    count_hash(o, hash, idle);
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

/* Takes one differing element into the box. */
static void widen(struct difference *d, const struct job_buffer *spec, uint64_t index) {
    for (size_t k = spec->dimension_count; k-- > 0; index /= spec->dimensions[k]) {
        uint64_t at = index % spec->dimensions[k];
        d->low[k] = d->count == 0 || at < d->low[k] ? at : d->low[k];
        d->high[k] = d->count == 0 || at > d->high[k] ? at : d->high[k];
    }
}

struct difference output_difference(const struct case_buffer *b) {
    const uint8_t *bits = b->output->differs;
    struct difference d = {.count = 0};
    for (uint64_t i = 0; bits != NULL && i < b->spec->count; i++) {
        if (((unsigned)bits[i / 8] >> (i % 8) & 1u) != 0) {
            widen(&d, b->spec, i);
            d.first = d.count == 0 ? i : d.first;
            d.last = i;
            d.count++;
        }
    }
    return d;
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
