/* The result stream; see stream.h. */
#include "stream.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "clock.h"
#include "version.h"

bool write_all(int fd, const char *data, size_t size) {
    while (size > 0) {
        ssize_t wrote = write(fd, data, size);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0 && errno == EAGAIN) { /* whoever started us made stdout non-blocking */
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            (void)poll(&room, 1, -1);
            continue;
        }
        if (wrote <= 0) {
            return false;
        }
        data += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

void stream_open(struct stream *s, int fd) {
    *s = (struct stream){.fd = fd, .started_ms = clock_ms()};
    s->written_ms = s->started_ms;
    sha256_init(&s->digest);
}

bool stream_write(struct stream *s, const char *data, size_t size) {
    if (s->broken || !write_all(s->fd, data, size)) {
        s->broken = true;
        return false;
    }
    sha256_update(&s->digest, data, size);
    s->written_ms = clock_ms();
    return true;
}

bool stream_json(struct stream *s, struct json *line) {
    json_newline(line);
    bool good = json_ok(line) && stream_write(s, line->data, line->size);
    json_free(line);
    return good;
}

bool stream_hello(struct stream *s, const char *run) {
    struct json j = {0};
    json_open(&j, '{');
    json_field_str(&j, "type", "hello");
    json_field_u64(&j, "format", 1);
    json_field_str(&j, "run", run);
    json_field_str(&j, "runner", RUNNER_VERSION);
    json_field_u64(&j, "pid", (uint64_t)getpid());
    json_close(&j, '}');
    return stream_json(s, &j);
}

bool stream_beat(struct stream *s) {
    struct json j = {0};
    json_open(&j, '{');
    json_field_str(&j, "type", "beat");
    json_field_u64(&j, "uptime_ms", (uint64_t)(clock_ms() - s->started_ms));
    json_close(&j, '}');
    return stream_json(s, &j);
}

bool stream_final(struct stream *s) {
    char hex[SHA256_HEX_SIZE];
    struct json j = {0};
    sha256_hex(&s->digest, hex);
    json_open(&j, '{');
    json_field_str(&j, "type", "final");
    json_field_u64(&j, "cases", s->ends);
    json_field_u64(&j, "bytes", s->digest.bytes);
    json_field_str(&j, "sha256", hex);
    json_close(&j, '}');
    return stream_json(s, &j);
}
