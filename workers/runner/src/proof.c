/* Running proofs; see proof.h. */
#include "proof.h"

#include <inttypes.h>
#include <stdlib.h>

#define PAIRS 64u

struct parts {
    struct program *program;
    struct gpu_buffer *in, *out;
};

static bool make(struct device *d, const struct trial *trial, struct parts *parts,
                 struct failure *failure) {
    struct log log = {.text = NULL};
    struct shader shader = trial->shader;
    shader.binding_count = 2;
    parts->program = d->backend->compile(d, &shader, &log, failure);
    free(log.text);
    if (parts->program == NULL) {
        return false;
    }
    parts->in = d->backend->buffer_new(d, trial->in_count * 4, failure);
    if (parts->in == NULL) {
        return false;
    }
    parts->out = d->backend->buffer_new(d, trial->out_count * 4, failure);
    return parts->out != NULL;
}

static void drop(struct device *d, const struct parts *parts) {
    if (parts->in != NULL) {
        d->backend->buffer_free(d, parts->in);
    }
    if (parts->out != NULL) {
        d->backend->buffer_free(d, parts->out);
    }
    if (parts->program != NULL) {
        d->backend->program_free(d, parts->program);
    }
}

static bool read_words(struct device *d, const struct parts *parts, struct trial *trial,
                       struct failure *failure) {
    const uint32_t *words = d->backend->map(d, parts->out, 0, trial->out_count * 4, failure);
    if (words == NULL) {
        return false;
    }
    for (size_t i = 0; i < trial->out_count; i++) {
        trial->out[i] = words[i];
    }
    return d->backend->unmap(d, parts->out, failure);
}

static bool run(struct device *d, const struct parts *parts, struct trial *trial,
                struct failure *failure) {
    const struct binding bindings[] = {
        {.buffer = parts->in, .size = trial->in_count * 4},
        {.buffer = parts->out, .size = trial->out_count * 4},
    };
    const struct dispatch dispatch = {.program = parts->program,
                                      .grid = {trial->groups, 1, 1},
                                      .bindings = bindings,
                                      .binding_count = 2,
                                      .values = trial->in,
                                      .value_count = trial->shader.value_count};
    const struct sequence sequence = {.dispatches = &dispatch, .count = 1};
    return d->backend->write(d, parts->in, 0, trial->in, trial->in_count * 4, failure) &&
           d->backend->fill(d, parts->out, 0, trial->out_count * 4, 0, failure) &&
           d->backend->run(d, &sequence, 1, true, &trial->elapsed, failure) &&
           read_words(d, parts, trial, failure);
}

bool proof_run(struct device *device, struct trial *trial, struct failure *failure) {
    struct parts parts = {.program = NULL};
    bool good = make(device, trial, &parts, failure) && run(device, &parts, trial, failure);
    drop(device, &parts);
    return good;
}

static uint32_t pair_at(uint32_t i) {
    return (0x3c00u + i) | (0x4400u + i) << 16; /* halves from 1 and from 4 upwards, all finite */
}

bool proof_pack_half(struct device *device, const void *source, size_t size,
                     struct elapsed *elapsed, struct failure *failure) {
    uint32_t in[PAIRS], out[PAIRS];
    struct trial trial = {
        .shader = {.source = source, .size = size},
        .groups = PAIRS,
        .in = in,
        .in_count = PAIRS,
        .out = out,
        .out_count = PAIRS,
    };
    for (uint32_t i = 0; i < PAIRS; i++) {
        in[i] = pair_at(i);
    }
    if (!proof_run(device, &trial, failure)) {
        return false;
    }
    for (uint32_t i = 0; i < PAIRS; i++) {
        uint32_t right = pair_at(i) >> 16 | pair_at(i) << 16;
        if (out[i] != right) {
            return fail(failure, FAULT_DRIVER,
                        "pair %" PRIu32 " came out as 0x%08" PRIx32 ", not 0x%08" PRIx32, i, out[i],
                        right);
        }
    }
    if (elapsed != NULL) {
        *elapsed = trial.elapsed;
    }
    return true;
}

bool proof_timer(struct device *device, const void *source, size_t size, struct failure *failure) {
    struct elapsed elapsed;
    if (!proof_pack_half(device, source, size, &elapsed, failure)) {
        return false;
    }
    return elapsed.gpu_ns > 0 ||
           fail(failure, FAULT_DRIVER,
                elapsed.gpu_ns < 0 ? "the timer gave no result" : "the timer stood still");
}
