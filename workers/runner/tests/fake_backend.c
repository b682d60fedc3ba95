/* A backend without a GPU, linked into tests in place of backends.c. A shader is a list of words:
 *
 *     double | none | half | inc     y = 2x (f32) · writes nothing · y = 2x for half of y · y += 1
 *     group=X,Y,Z                    workgroup size
 *     bad=compile|link               refused, with a log of hostile bytes; bad=long: a log of
 * 20,000 bytes crash=compile|dispatch         abort(); hang=… sleeps for ever; lost: the context is
 * lost corrupt=N                      each Nth dispatch of the process leaves one wrong element
 *     guard=before|after             writes outside the output
 *     nan=I                          element I becomes NaN
 *     gpu=stuck|good                 a GPU timer that says 1 ns, or the truth
 *     slow=MS                        a dispatch takes that long
 *
 * FAKE_OPEN=fail|crash|hang makes opening fail, FAKE_BUFFERS=N lets the Nth buffer fail. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "clock.h"

struct fake_program {
    struct program base;
    char text[256];
};

struct fake_buffer {
    struct gpu_buffer base;
    uint8_t *bytes;
};

static unsigned dispatches, buffers;

static const char *option(const char *text, const char *key) {
    const char *at = strstr(text, key);
    return at == NULL ? NULL : at + strlen(key);
}

static bool says(const char *text, const char *word) {
    return strstr(text, word) != NULL;
}

static void misfortune(const char *text, const char *where) {
    char word[32];
    (void)snprintf(word, sizeof word, "crash=%s", where);
    if (says(text, word)) {
        (void)signal(SIGABRT, SIG_DFL);
        abort();
    }
    (void)snprintf(word, sizeof word, "hang=%s", where);
    while (says(text, word)) {
        (void)pause();
    }
}

static const struct backend fake_backend;

static bool fake_adapters(void (*each)(void *arg, const char *adapter), void *arg,
                          struct failure *failure) {
    (void)failure;
    each(arg, "");
    return true;
}

static struct device *fake_open(const struct opening *opening, struct failure *failure) {
    (void)opening;
    const char *how = getenv("FAKE_OPEN");
    char word[32];
    (void)snprintf(word, sizeof word, "%s=open", how == NULL ? "" : how);
    misfortune(word, "open");
    if (how != NULL) {
        (void)fail(failure, FAULT_DRIVER, "the fake driver is told to fail");
        return NULL;
    }
    struct device *d = calloc(1, sizeof *d);
    if (d == NULL) {
        (void)fail(failure, FAULT_MEMORY, "out of memory");
        return NULL;
    }
    d->backend = &fake_backend;
    (void)snprintf(d->driver.renderer, sizeof d->driver.renderer, "fake\x1b<script>");
    for (int i = 0; i < LIMIT_COUNT; i++) {
        d->limits.value[i] = 1024;
    }
    d->limits.value[LIMIT_STORAGE_ALIGN] = 256;
    d->limits.value[LIMIT_STORAGE_BYTES] = 1u << 20;
    d->timer_bits = 64;
    return d;
}

static void fake_close(struct device *d) {
    free(d);
}

static void hostile_log(struct log *log, size_t size) {
    static const char bytes[] = "0:1: \x1b[31m<script>\xe2\x80\xae\"\\\n\0end";
    log->text = malloc(size);
    if (log->text == NULL) {
        return;
    }
    for (size_t i = 0; i < size; i++) {
        log->text[i] = bytes[i % (sizeof bytes - 1)];
    }
    log->size = size > LOG_MAX ? LOG_MAX : size;
    log->truncated = size > LOG_MAX;
}

static struct program *fake_compile(struct device *d, const struct shader *shader, struct log *log,
                                    struct failure *failure) {
    struct fake_program *p = calloc(1, sizeof *p);
    (void)d;
    if (p == NULL || shader->size >= sizeof p->text) {
        (void)fail(failure, FAULT_MEMORY, "out of memory");
        free(p);
        return NULL;
    }
    memcpy(p->text, shader->source, shader->size);
    misfortune(p->text, "compile");
    if (says(p->text, "bad=")) {
        enum fault kind = says(p->text, "bad=link") ? FAULT_LINK : FAULT_COMPILE;
        hostile_log(log, says(p->text, "bad=long") ? 20000 : 64);
        (void)fail(failure, kind, "refused");
        free(p);
        return NULL;
    }
    const char *group = option(p->text, "group=");
    for (int i = 0; i < 3; i++) {
        char *end = NULL;
        p->base.group[i] = group == NULL ? 1 : (uint32_t)strtoul(group, &end, 10);
        group = group == NULL ? NULL : end + 1;
    }
    return &p->base;
}

static void fake_program_free(struct device *d, struct program *p) {
    (void)d;
    free(p);
}

static struct gpu_buffer *fake_buffer_new(struct device *d, size_t size, struct failure *failure) {
    const char *nth = getenv("FAKE_BUFFERS");
    struct fake_buffer *b = calloc(1, sizeof *b);
    (void)d;
    buffers++;
    if (b != NULL) {
        b->base.size = size;
        b->bytes = malloc(size);
    }
    if (b == NULL || b->bytes == NULL || (nth != NULL && strtoul(nth, NULL, 10) == buffers)) {
        (void)fail(failure, FAULT_MEMORY, "fake: out of memory");
        if (b != NULL) {
            free(b->bytes);
        }
        free(b);
        return NULL;
    }
    return &b->base;
}

static uint8_t *bytes_of(struct gpu_buffer *b) {
    return ((struct fake_buffer *)b)->bytes;
}

static void fake_buffer_free(struct device *d, struct gpu_buffer *b) {
    (void)d;
    free(bytes_of(b));
    free(b);
}

static bool fake_write(struct device *d, struct gpu_buffer *b, size_t offset, const void *data,
                       size_t size, struct failure *failure) {
    (void)d;
    (void)failure;
    memcpy(bytes_of(b) + offset, data, size);
    return true;
}

static bool fake_fill(struct device *d, struct gpu_buffer *b, size_t offset, size_t size,
                      uint32_t pattern, struct failure *failure) {
    for (size_t i = 0; i < size; i += 4) {
        (void)fake_write(d, b, offset + i, &pattern, 4, failure);
    }
    return true;
}

static const void *fake_map(struct device *d, struct gpu_buffer *b, size_t offset, size_t size,
                            struct failure *failure) {
    (void)d;
    if (offset + size > b->size) {
        (void)fail(failure, FAULT_DRIVER, "fake: mapped beyond the buffer");
        return NULL;
    }
    return bytes_of(b) + offset;
}

static bool fake_unmap(struct device *d, struct gpu_buffer *b, struct failure *failure) {
    (void)d;
    (void)b;
    (void)failure;
    return true;
}

static void compute(const char *text, const struct dispatch *pass) {
    const struct binding *last = &pass->bindings[pass->binding_count - 1];
    uint8_t *out = bytes_of(last->buffer) + last->offset;
    const uint8_t *in = bytes_of(pass->bindings[0].buffer) + pass->bindings[0].offset;
    size_t count = last->size / 4;
    for (size_t i = 0; i < (says(text, "half") ? count / 2 : count); i++) {
        float value;
        memcpy(&value, in + 4 * i, 4);
        value = says(text, "inc") ? value + 1 : 2 * value;
        if (!says(text, "none")) {
            memcpy(out + 4 * i, &value, 4);
        }
    }
    const char *corrupt = option(text, "corrupt="), *nan = option(text, "nan=");
    const float wrong = 77, not_a_number = NAN;
    if (corrupt != NULL && dispatches % strtoul(corrupt, NULL, 10) == 0) {
        memcpy(out + 4 * 5, &wrong, 4);
    }
    if (nan != NULL) {
        memcpy(out + 4 * strtoul(nan, NULL, 10), &not_a_number, 4);
    }
    if (says(text, "guard=before")) {
        out[-1] = 0;
    }
    if (says(text, "guard=after")) {
        out[last->size + 1023] = 0; /* the last byte of the band */
    }
}

static bool dispatch(const struct dispatch *pass, struct failure *failure) {
    const char *text = ((const struct fake_program *)pass->program)->text;
    const char *slow = option(text, "slow=");
    dispatches++;
    misfortune(text, "dispatch");
    if (slow != NULL) {
        const struct timespec nap = {.tv_nsec = (long)strtoul(slow, NULL, 10) * 1000000};
        (void)nanosleep(&nap, NULL);
    }
    if (says(text, "lost")) {
        return fail(failure, FAULT_LOST, "fake: the context was lost");
    }
    compute(text, pass);
    return true;
}

static bool fake_run(struct device *d, const struct sequence *sequence, unsigned times,
                     bool gpu_timer, struct elapsed *elapsed, struct failure *failure) {
    const char *text = ((const struct fake_program *)sequence->dispatches[0].program)->text;
    int64_t start = clock_ns();
    (void)d;
    for (unsigned t = 0; t < times; t++) {
        for (size_t i = 0; i < sequence->count; i++) {
            if (!dispatch(&sequence->dispatches[i], failure)) {
                return false;
            }
        }
    }
    *elapsed = (struct elapsed){.wall_ns = clock_ns() - start, .gpu_ns = -1};
    if (gpu_timer && says(text, "gpu=")) {
        elapsed->gpu_ns = says(text, "gpu=stuck") ? 1 : elapsed->wall_ns;
    }
    return true;
}

static void fake_extensions(struct device *d, void (*each)(void *arg, const char *name),
                            void *arg) {
    (void)d;
    each(arg, "FAKE_one");
    each(arg, "FAKE_\"two");
}

static const struct backend fake_backend = {
    .api = "gles",
    .adapters = fake_adapters,
    .open = fake_open,
    .close = fake_close,
    .compile = fake_compile,
    .program_free = fake_program_free,
    .buffer_new = fake_buffer_new,
    .buffer_free = fake_buffer_free,
    .write = fake_write,
    .fill = fake_fill,
    .map = fake_map,
    .unmap = fake_unmap,
    .run = fake_run,
    .extensions = fake_extensions,
    .pack_half_source = "none",
};

const struct backend *backend_find(const char *api) {
    return strcmp(api, fake_backend.api) == 0 ? &fake_backend : NULL;
}
