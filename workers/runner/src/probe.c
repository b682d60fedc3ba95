/* The probe command; see probe.h. */
#include "probe.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "backend.h"
#include "clock.h"
#include "driver_json.h"
#include "exit_codes.h"
#include "lines.h"
#include "stream.h"

#define PROBE_DEADLINE_MS 60000
#define FEATURE_GROUPS 64u

struct features {
    bool pack_half, timer_query;
};

static uint32_t pair_at(uint32_t i) {
    return (0x3c00u + i) | (0x4400u + i) << 16; /* halves from 1 and from 4 upwards, all finite */
}

static bool halves_swapped(struct device *d, struct gpu_buffer *result, struct failure *failure) {
    const uint32_t *words = d->backend->map(d, result, 0, FEATURE_GROUPS * 4, failure);
    bool right = words != NULL;
    for (uint32_t i = 0; right && i < FEATURE_GROUPS; i++) {
        right = words[i] == (pair_at(i) >> 16 | pair_at(i) << 16);
    }
    return words != NULL && d->backend->unmap(d, result, failure) && right;
}

static void run_pack_half(struct device *d, struct program *program, struct gpu_buffer *source,
                          struct gpu_buffer *result, struct features *features) {
    const struct binding bindings[] = {
        {.buffer = source, .size = FEATURE_GROUPS * 4},
        {.buffer = result, .size = FEATURE_GROUPS * 4},
    };
    const struct dispatch dispatch = {.program = program,
                                      .grid = {FEATURE_GROUPS, 1, 1},
                                      .bindings = bindings,
                                      .binding_count = 2};
    const struct sequence sequence = {.dispatches = &dispatch, .count = 1};
    uint32_t words[FEATURE_GROUPS];
    struct failure failure;
    struct elapsed elapsed;
    for (uint32_t i = 0; i < FEATURE_GROUPS; i++) {
        words[i] = pair_at(i);
    }
    if (d->backend->write(d, source, 0, words, sizeof words, &failure) &&
        d->backend->fill(d, result, 0, sizeof words, 0, &failure) &&
        d->backend->run(d, &sequence, 1, true, &elapsed, &failure)) {
        features->timer_query = elapsed.gpu_ns > 0;
        features->pack_half = halves_swapped(d, result, &failure);
    }
}

/* An extension or a function that is advertised counts only once a shader that uses it ran. */
static struct features find_features(struct device *d) {
    struct features features = {.pack_half = false};
    const char *source = d->backend->pack_half_source;
    const struct shader shader = {.source = source, .size = strlen(source), .binding_count = 2};
    struct log log = {.text = NULL};
    struct failure failure;
    struct program *program = d->backend->compile(d, &shader, &log, &failure);
    free(log.text);
    if (program == NULL) {
        return features;
    }
    struct gpu_buffer *from = d->backend->buffer_new(d, FEATURE_GROUPS * 4, &failure);
    struct gpu_buffer *to = d->backend->buffer_new(d, FEATURE_GROUPS * 4, &failure);
    if (from != NULL && to != NULL) {
        run_pack_half(d, program, from, to, &features);
    }
    if (from != NULL) {
        d->backend->buffer_free(d, from);
    }
    if (to != NULL) {
        d->backend->buffer_free(d, to);
    }
    d->backend->program_free(d, program);
    return features;
}

static void add_extension(void *arg, const char *name) {
    json_str(arg, name);
}

static void put_limits(const struct limits *limits, struct json *j) {
    json_key(j, "limits");
    json_open(j, '{');
    for (int i = 0; i < LIMIT_COUNT; i++) {
        json_field_u64(j, limit_name((enum limit)i), limits->value[i]);
    }
    json_close(j, '}');
    bool imposed = false;
    for (int i = 0; i < LIMIT_COUNT; i++) {
        imposed = imposed || limits->imposed[i];
    }
    json_key(j, "imposed");
    json_bool(j, imposed);
    json_key(j, "imposed_limits");
    json_open(j, '[');
    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (limits->imposed[i]) {
            json_str(j, limit_name((enum limit)i));
        }
    }
    json_close(j, ']');
}

static void put_profile(struct device *d, struct json *j) {
    const struct features features = find_features(d);
    json_open(j, '{');
    json_field_str(j, "type", "profile");
    json_field_u64(j, "format", 1);
    driver_json(d, j);
    put_limits(&d->limits, j);
    json_key(j, "extensions");
    json_open(j, '[');
    d->backend->extensions(d, add_extension, j);
    json_close(j, ']');
    json_key(j, "features");
    json_open(j, '{');
    json_key(j, "pack_half");
    json_bool(j, features.pack_half);
    json_key(j, "timer_query");
    json_bool(j, features.timer_query);
    json_close(j, '}');
    json_field_u64(j, "timer_bits", (uint64_t)d->timer_bits);
    json_close(j, '}');
    json_newline(j);
}

int probe_child(int fd, size_t first, void *arg) {
    const struct probe *probe = arg;
    const struct opening opening = {.adapter = NULL};
    struct failure failure = {.kind = FAULT_NONE};
    struct json j = {0};
    (void)first;
    struct device *d = device_open(probe->api, &opening, probe->impose, &failure);
    if (d == NULL) {
        (void)fprintf(stderr, "tilefarm-runner: %s\n", failure.reason);
        return CHILD_NO_DEVICE;
    }
    put_profile(d, &j);
    bool good = json_ok(&j) && write_all(fd, j.data, j.size);
    json_free(&j);
    d->backend->close(d);
    return good ? CHILD_DONE : CHILD_BROKEN;
}

/* The child's one line, within the deadline; false if there is none. */
static bool relay_profile(const struct child *child, struct lines *lines, struct stream *out) {
    int64_t deadline = clock_ms() + PROBE_DEADLINE_MS;
    for (;;) {
        int64_t left = deadline - clock_ms();
        struct pollfd pipe = {.fd = child->fd, .events = POLLIN};
        if (left <= 0) {
            (void)fprintf(stderr, "tilefarm-runner: the driver hung for %d ms\n",
                          PROBE_DEADLINE_MS);
            return false;
        }
        (void)poll(&pipe, 1, (int)left);
        enum lines_state state = lines_read(lines, child->fd);
        size_t size = 0;
        const char *line = lines_next(lines, &size);
        if (line != NULL) {
            return stream_write(out, line, size + 1);
        }
        if (state == LINES_EOF || state == LINES_BAD) {
            return false;
        }
    }
}

int probe_run(struct probe *probe, int out_fd) {
    struct child child = {.fd = -1};
    struct lines lines = {.data = NULL};
    struct stream out;
    int status = 0;
    stream_open(&out, out_fd);
    if (!child_start(&child, probe_child, 0, probe)) {
        perror("tilefarm-runner: fork");
        return EXIT_NO_DRIVER;
    }
    bool got = relay_profile(&child, &lines, &out);
    if (child_reap(&child, 1000, &status) && WIFSIGNALED(status)) {
        (void)fprintf(stderr, "tilefarm-runner: the driver crashed with signal %d\n",
                      WTERMSIG(status));
    }
    child_kill(&child);
    child_close(&child);
    lines_free(&lines);
    if (!got) {
        return out.broken ? EXIT_NO_READER : EXIT_NO_DRIVER;
    }
    return stream_final(&out) ? EXIT_FINAL : EXIT_NO_READER;
}
