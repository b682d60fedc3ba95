/* The buffers of a case on the device, between guard bands; see case_run.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_run.h"

static bool is_input(const struct case_buffer *b) {
    return b->spec->role == ROLE_IN || b->spec->role == ROLE_INOUT;
}

static bool get_blob(struct case_run *run, const char *hash, uint64_t size, const char *what,
                     struct blob *blob) {
    if (!blobs_get(&run->session->blobs, hash, blob, run->failure.reason)) {
        run->failure.kind = FAULT_DRIVER;
        return case_fail(run);
    }
    if (blob->size != size) {
        (void)fail(&run->failure, FAULT_DRIVER,
                   "blob %s: %s of %" PRIu64 " bytes was expected, not %zu", hash, what, size,
                   blob->size);
        return case_fail(run);
    }
    return true;
}

static bool load_blobs(struct case_run *run, struct case_buffer *b) {
    const struct job_buffer *spec = b->spec;
    return (!is_input(b) || get_blob(run, spec->blob, b->value_bytes, "a buffer", &b->blob)) &&
           (!spec->checked || get_blob(run, spec->reference, spec->count * sizeof(double),
                                       "a reference", &b->reference));
}

static bool fill(struct case_run *run, struct case_buffer *b, size_t offset, size_t size,
                 uint32_t pattern) {
    struct device *d = run->session->device;
    return d->backend->fill(d, b->gpu, offset, size, pattern, &run->failure) || case_fail(run);
}

static bool write(struct case_run *run, struct case_buffer *b, size_t offset, const void *data,
                  size_t size) {
    struct device *d = run->session->device;
    return size == 0 ||
           d->backend->write(d, b->gpu, b->front + offset, data, size, &run->failure) ||
           case_fail(run);
}

/* An odd count of f16 leaves half a word, which is zero. The last word goes by itself, whole: on an
 * NVIDIA H200 (580.159.04) the last two bytes of a 10-byte upload after a mapped fill stayed zero.
 */
static bool write_blob(struct case_run *run, struct case_buffer *b) {
    size_t whole = b->value_bytes / 4 * 4;
    unsigned char last[4] = {0};
    memcpy(last, (const unsigned char *)b->blob.data + whole, b->value_bytes - whole);
    return write(run, b, 0, b->blob.data, whole) && write(run, b, whole, last, b->bytes - whole);
}

static bool prefill(struct case_run *run, struct case_buffer *b) {
    uint32_t half_pair = (uint32_t)PREFILL_16 << 16 | PREFILL_16;
    return fill(run, b, b->front, b->bytes, b->spec->dtype == DTYPE_F16 ? half_pair : PREFILL_32);
}

static size_t front_of(const struct limits *limits) {
    uint64_t align = limits->value[LIMIT_STORAGE_ALIGN];
    return align == 0 ? GUARD_BYTES : (size_t)((GUARD_BYTES + align - 1) / align * align);
}

static bool allocate(struct case_run *run, struct case_buffer *b) {
    struct device *d = run->session->device;
    uint64_t bytes = job_buffer_bytes(b->spec);
    if (bytes > SIZE_MAX / 2 - 2 * b->front) {
        (void)fail(&run->failure, FAULT_MEMORY, "buffer %s of %" PRIu64 " bytes: out of memory",
                   b->spec->name, bytes);
        return case_fail(run);
    }
    b->bytes = (size_t)bytes;
    b->value_bytes = (size_t)(b->spec->count * job_element_bytes(b->spec->dtype));
    if (b->spec->checked || b->spec->keep != KEEP_NEVER) {
        b->output = calloc(1, sizeof *b->output);
        if (b->output == NULL) {
            return case_no_memory(run);
        }
    }
    if (!load_blobs(run, b)) {
        return false;
    }
    b->gpu = d->backend->buffer_new(d, b->front + b->bytes + GUARD_BYTES, &run->failure);
    if (b->gpu == NULL) {
        return case_fail(run);
    }
    return fill(run, b, 0, b->front, GUARD_WORD) &&
           fill(run, b, b->front + b->bytes, GUARD_BYTES, GUARD_WORD) &&
           (b->spec->role != ROLE_IN || write_blob(run, b));
}

static bool bind_all(struct case_run *run) {
    size_t total = 0;
    for (size_t i = 0; i < run->spec->pass_count; i++) {
        total += run->spec->passes[i].binding_count;
    }
    run->bindings = calloc(total, sizeof *run->bindings);
    if (run->bindings == NULL) {
        return case_no_memory(run);
    }
    struct binding *at = run->bindings;
    for (size_t i = 0; i < run->spec->pass_count; i++) {
        const struct job_pass *pass = &run->spec->passes[i];
        run->dispatches[i].bindings = at;
        run->dispatches[i].binding_count = pass->binding_count;
        for (size_t k = 0; k < pass->binding_count; k++) {
            const struct case_buffer *b = &run->buffers[pass->bindings[k]];
            *at++ = (struct binding){.buffer = b->gpu, .offset = b->front, .size = b->bytes};
        }
    }
    return true;
}

bool case_allocate(struct case_run *run) {
    session_stage(run->session, STAGE_BUFFERS);
    run->buffers = calloc(run->spec->buffer_count, sizeof *run->buffers);
    if (run->buffers == NULL) {
        return case_no_memory(run);
    }
    for (size_t i = 0; i < run->spec->buffer_count; i++) {
        run->buffers[i].spec = &run->spec->buffers[i];
        run->buffers[i].front = front_of(&run->session->device->limits);
        if (!allocate(run, &run->buffers[i])) {
            return false;
        }
    }
    return bind_all(run);
}

bool case_prefill(struct case_run *run) {
    session_stage(run->session, STAGE_BUFFERS);
    for (size_t i = 0; i < run->spec->buffer_count; i++) {
        struct case_buffer *b = &run->buffers[i];
        bool good =
            b->spec->role == ROLE_IN || (is_input(b) ? write_blob(run, b) : prefill(run, b));
        if (!good) {
            return false;
        }
    }
    return true;
}

bool case_refill_inout(struct case_run *run) {
    for (size_t i = 0; i < run->spec->buffer_count; i++) {
        if (run->buffers[i].spec->role == ROLE_INOUT && !write_blob(run, &run->buffers[i])) {
            return false;
        }
    }
    return true;
}

static bool is_intact(const uint8_t *guard, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (guard[i] != (uint8_t)(GUARD_WORD & 0xffu)) {
            return false;
        }
    }
    return true;
}

static bool check_guard(struct case_run *run, struct case_buffer *b, size_t offset, size_t size) {
    struct device *d = run->session->device;
    const uint8_t *guard = d->backend->map(d, b->gpu, offset, size, &run->failure);
    if (guard == NULL) {
        return case_fail(run);
    }
    b->damaged = b->damaged || !is_intact(guard, size);
    return d->backend->unmap(d, b->gpu, &run->failure) || case_fail(run);
}

bool case_check_guards(struct case_run *run) {
    session_stage(run->session, STAGE_READBACK);
    for (size_t i = 0; i < run->spec->buffer_count; i++) {
        struct case_buffer *b = &run->buffers[i];
        if (b->output == NULL && (!check_guard(run, b, 0, b->front) ||
                                  !check_guard(run, b, b->front + b->bytes, GUARD_BYTES))) {
            return false;
        }
    }
    return true;
}

static bool read_output(struct case_run *run, struct case_buffer *b) {
    struct device *d = run->session->device;
    size_t all = b->front + b->bytes + GUARD_BYTES;
    const uint8_t *data = d->backend->map(d, b->gpu, 0, all, &run->failure);
    if (data == NULL) {
        return case_fail(run);
    }
    b->damaged = b->damaged || !is_intact(data, b->front) ||
                 !is_intact(data + b->front + b->bytes, GUARD_BYTES);
    bool noted = output_note(b, data + b->front, run->rested);
    if (!d->backend->unmap(d, b->gpu, &run->failure)) {
        return case_fail(run);
    }
    return noted || case_no_memory(run);
}

bool case_read_outputs(struct case_run *run) {
    session_stage(run->session, STAGE_READBACK);
    for (size_t i = 0; i < run->spec->buffer_count; i++) {
        if (run->buffers[i].output != NULL && !read_output(run, &run->buffers[i])) {
            return false;
        }
    }
    return true;
}

void case_free_buffers(struct case_run *run) {
    struct device *d = run->session->device;
    for (size_t i = 0; run->buffers != NULL && i < run->spec->buffer_count; i++) {
        struct case_buffer *b = &run->buffers[i];
        if (b->gpu != NULL) {
            d->backend->buffer_free(d, b->gpu);
        }
        if (b->output != NULL) {
            output_free(b->output);
        }
    }
    free(run->buffers);
    free(run->bindings);
    run->buffers = NULL;
    run->bindings = NULL;
}
