/* A backend without a GPU, linked into tests in place of backends.c. API gles has one GPU, API
 * vulkan two: the adapters "fake-0" and "fake-1". Its driver record's version names what was
 * enabled. A shader is a list of words:
 *
 *     double | half | inc            y = 2x (f32) · y = 2x for half of y · y += 1
 *     none | zeros                   writes nothing, as an oversized workgroup does · zeros
 *     echo                           y = constants..., 0..., subgroup size, number of bindings
 *     values                         y += values..., 0..., their number as it was compiled for
 *     group=X,Y,Z                    workgroup size
 *     bad=compile|link|long          refused, with a log of hostile bytes; long: of 20,000 bytes
 *     bad=unsupported                refused, for the driver lacks what was asked for
 *     crash=compile|dispatch         abort(), with a word on stderr; hang=…: sleeps for ever
 *     lost=now|free                  the device is lost in the dispatch · once buffers are freed;
 *                                    from then on each call of the process fails
 *     corrupt=N                      each Nth dispatch of the process leaves one wrong element
 *     corrupt_block=R0,C0,R1,C1,W,N  23 of N dispatches leave a wrong block in an output of W
 *                                    columns, each time with other values
 *     idle_corrupt=MS,P/Q            P of Q dispatches leave a wrong element, but only of those
 *                                    that come after a sleep of MS
 *     guard=before|after             writes outside the output
 *     nan=I                          element I becomes NaN
 *     gpu=good|zero|stuck|wrap       a GPU timer that says the truth, 0 ns, 1 ns, or now and then
 *                                    4 s too much
 *     slow=MS · slow_compile=MS      a dispatch, or compiling, takes that long
 *
 * FAKE_OPEN=fail|crash|hang makes opening fail, FAKE_BUFFERS=N lets the Nth buffer fail,
 * FAKE_VENDOR names the GPU's vendor. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fake.h"

struct fake_state fake;

const char *fake_option(const char *text, const char *start) {
    size_t size = strlen(start);
    for (const char *at = strstr(text, start); at != NULL; at = strstr(at + 1, start)) {
        if (at == text || at[-1] == ' ') {
            return at + size;
        }
    }
    return NULL;
}

bool fake_says(const char *text, const char *start) {
    return fake_option(text, start) != NULL;
}

void fake_misfortune(const char *text, const char *where) {
    char word[32];
    (void)snprintf(word, sizeof word, "crash=%s", where);
    if (fake_says(text, word)) {
        (void)fprintf(stderr, "fake driver: assertion failed in %s\n", where);
        (void)signal(SIGABRT, SIG_DFL);
        abort();
    }
    (void)snprintf(word, sizeof word, "hang=%s", where);
    while (fake_says(text, word)) {
        (void)pause();
    }
}

bool fake_is_lost(struct failure *failure) {
    return fake.lost && !fail(failure, FAULT_LOST, "fake: the device was lost");
}

static const struct backend fake_gles, fake_vulkan;
static const char *const adapters[] = {"fake-0", "fake-1"};
#define ADAPTERS (sizeof adapters / sizeof adapters[0])

static bool gles_adapters(void (*each)(void *arg, const char *adapter), void *arg,
                          struct failure *failure) {
    (void)failure;
    each(arg, "");
    return true;
}

static bool vulkan_adapters(void (*each)(void *arg, const char *adapter), void *arg,
                            struct failure *failure) {
    (void)failure;
    for (size_t i = 0; i < ADAPTERS; i++) {
        each(arg, adapters[i]);
    }
    return true;
}

static struct device *open_device(const struct backend *backend, struct failure *failure) {
    const char *how = getenv("FAKE_OPEN");
    char word[32];
    (void)snprintf(word, sizeof word, "%s=open", how == NULL ? "" : how);
    fake_misfortune(word, "open");
    if (how != NULL) {
        (void)fail(failure, FAULT_DRIVER, "the fake driver is told to fail");
        return NULL;
    }
    struct device *d = calloc(1, sizeof *d);
    if (d == NULL) {
        (void)fail(failure, FAULT_MEMORY, "out of memory");
        return NULL;
    }
    d->backend = backend;
    for (int i = 0; i < LIMIT_COUNT; i++) {
        d->limits.value[i] = 1024;
    }
    d->limits.value[LIMIT_STORAGE_ALIGN] = 256;
    d->limits.value[LIMIT_STORAGE_BYTES] = 1u << 20;
    d->timer_bits = 64;
    const char *vendor = getenv("FAKE_VENDOR");
    (void)snprintf(d->driver.vendor, sizeof d->driver.vendor, "%s", vendor == NULL ? "" : vendor);
    return d;
}

static struct device *gles_open(const struct opening *opening, struct failure *failure) {
    struct device *d = open_device(&fake_gles, failure);
    (void)opening;
    if (d != NULL) {
        (void)snprintf(d->driver.renderer, sizeof d->driver.renderer, "fake\x1b<script>");
    }
    return d;
}

static struct device *vulkan_open(const struct opening *opening, struct failure *failure) {
    const char *wanted =
        opening->adapter == NULL || opening->adapter[0] == '\0' ? adapters[0] : opening->adapter;
    size_t i = 0;
    while (i < ADAPTERS && strcmp(adapters[i], wanted) != 0) {
        i++;
    }
    if (i == ADAPTERS) {
        (void)fail(failure, FAULT_DRIVER, "fake: no adapter %s", wanted);
        return NULL;
    }
    struct device *d = open_device(&fake_vulkan, failure);
    if (d != NULL) {
        (void)snprintf(d->driver.renderer, sizeof d->driver.renderer, "fake GPU %zu", i);
        (void)snprintf(d->driver.adapter, sizeof d->driver.adapter, "%s", adapters[i]);
        (void)snprintf(d->driver.version, sizeof d->driver.version, "enabled: %s",
                       opening->enable == NULL ? "" : opening->enable);
    }
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

static bool refuse(const char *text, struct log *log, struct failure *failure) {
    if (fake_says(text, "bad=unsupported")) {
        return fail(failure, FAULT_UNSUPPORTED, "subgroup_size 64 > 32");
    }
    if (fake_says(text, "bad=")) {
        enum fault kind = fake_says(text, "bad=link") ? FAULT_LINK : FAULT_COMPILE;
        hostile_log(log, fake_says(text, "bad=long") ? 20000 : 64);
        return fail(failure, kind, "refused");
    }
    return true;
}

static struct program *fake_compile(struct device *d, const struct shader *shader, struct log *log,
                                    struct failure *failure) {
    (void)d;
    if (fake_is_lost(failure)) {
        return NULL;
    }
    struct fake_program *p = calloc(1, sizeof *p);
    if (p == NULL || shader->size >= sizeof p->text || shader->constant_count > JOB_CONSTANTS_MAX) {
        (void)fail(failure, FAULT_MEMORY, "out of memory");
        free(p);
        return NULL;
    }
    memcpy(p->text, shader->source, shader->size);
    for (size_t i = 0; i < shader->constant_count; i++) {
        p->constants[i] = shader->constants[i];
    }
    p->constant_count = shader->constant_count;
    p->binding_count = shader->binding_count;
    p->value_count = shader->value_count;
    p->subgroup = shader->subgroup;
    fake_misfortune(p->text, "compile");
    fake_nap(p->text, "slow_compile=");
    if (!refuse(p->text, log, failure)) {
        free(p);
        return NULL;
    }
    const char *group = fake_option(p->text, "group=");
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
    (void)d;
    if (fake_is_lost(failure)) {
        return NULL;
    }
    struct fake_buffer *b = calloc(1, sizeof *b);
    fake.buffers++;
    if (b != NULL) {
        b->base.size = size;
        b->bytes = malloc(size);
    }
    if (b == NULL || b->bytes == NULL || (nth != NULL && strtoul(nth, NULL, 10) == fake.buffers)) {
        (void)fail(failure, FAULT_MEMORY, "fake: out of memory");
        if (b != NULL) {
            free(b->bytes);
        }
        free(b);
        return NULL;
    }
    return &b->base;
}

uint8_t *fake_bytes(struct gpu_buffer *b) {
    return ((struct fake_buffer *)b)->bytes;
}

static void fake_buffer_free(struct device *d, struct gpu_buffer *b) {
    (void)d;
    fake.lost = fake.lost || fake.lost_on_free;
    free(fake_bytes(b));
    free(b);
}

static bool fake_write(struct device *d, struct gpu_buffer *b, size_t offset, const void *data,
                       size_t size, struct failure *failure) {
    (void)d;
    if (fake_is_lost(failure)) {
        return false;
    }
    memcpy(fake_bytes(b) + offset, data, size);
    return true;
}

static bool fake_fill(struct device *d, struct gpu_buffer *b, size_t offset, size_t size,
                      uint32_t pattern, struct failure *failure) {
    bool good = true;
    for (size_t i = 0; good && i < size; i += 4) {
        good = fake_write(d, b, offset + i, &pattern, 4, failure);
    }
    return good;
}

static const void *fake_map(struct device *d, struct gpu_buffer *b, size_t offset, size_t size,
                            struct failure *failure) {
    (void)d;
    if (fake_is_lost(failure)) {
        return NULL;
    }
    if (offset + size > b->size) {
        (void)fail(failure, FAULT_DRIVER, "fake: mapped beyond the buffer");
        return NULL;
    }
    return fake_bytes(b) + offset;
}

static bool fake_unmap(struct device *d, struct gpu_buffer *b, struct failure *failure) {
    (void)d;
    (void)b;
    return !fake_is_lost(failure);
}

static bool fake_run(struct device *d, const struct sequence *sequence, unsigned times,
                     bool gpu_timer, struct elapsed *elapsed, struct failure *failure) {
    const char *text = ((const struct fake_program *)sequence->dispatches[0].program)->text;
    int64_t start = clock_ns();
    (void)d;
    fake.runs++;
    for (unsigned t = 0; t < times; t++) {
        for (size_t i = 0; i < sequence->count; i++) {
            if (!fake_dispatch(&sequence->dispatches[i], failure)) {
                return false;
            }
        }
    }
    *elapsed = (struct elapsed){.wall_ns = clock_ns() - start, .gpu_ns = -1};
    if (gpu_timer) {
        elapsed->gpu_ns = fake_gpu_ns(text, elapsed->wall_ns);
    }
    return true;
}

static void fake_extensions(struct device *d, void (*each)(void *arg, const char *name),
                            void *arg) {
    (void)d;
    each(arg, "FAKE_one");
    each(arg, "FAKE_\"two");
}

#define FAKE_FUNCTIONS                                                                             \
    .close = fake_close, .compile = fake_compile, .program_free = fake_program_free,               \
    .buffer_new = fake_buffer_new, .buffer_free = fake_buffer_free, .write = fake_write,           \
    .fill = fake_fill, .map = fake_map, .unmap = fake_unmap, .run = fake_run,                      \
    .extensions = fake_extensions,

static const struct backend fake_gles = {
    .api = "gles", .adapters = gles_adapters, .open = gles_open, FAKE_FUNCTIONS};
static const struct backend fake_vulkan = {
    .api = "vulkan", .adapters = vulkan_adapters, .open = vulkan_open, FAKE_FUNCTIONS};

const struct backend *backend_find(const char *api) {
    return strcmp(api, "gles") == 0 ? &fake_gles : strcmp(api, "vulkan") == 0 ? &fake_vulkan : NULL;
}
