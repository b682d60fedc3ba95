/* The result stream on stdout: writes lines, counts and digests them, beats when it is silent. */
#ifndef TILEFARM_STREAM_H
#define TILEFARM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json_out.h"
#include "sha256.h"

struct stream {
    int fd;
    struct sha256 digest;
    int64_t started_ms, written_ms;
    uint64_t ends; /* end records so far */
    bool broken;   /* the reader is gone */
};

void stream_open(struct stream *s, int fd);
/* Whole lines only. False when the reader is gone. */
bool stream_write(struct stream *s, const char *data, size_t size);
/* Writes the built line and frees it. */
bool stream_json(struct stream *s, struct json *line);
bool stream_hello(struct stream *s, const char *run);
bool stream_beat(struct stream *s);
bool stream_final(struct stream *s);

/* write(2) until all is written; for the child's pipe, too. */
bool write_all(int fd, const char *data, size_t size);

#endif
