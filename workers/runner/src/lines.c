/* Line assembly; see lines.h. */
#include "lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK 65536u

static void drop_taken(struct lines *l) {
    if (l->taken > 0) {
        l->size -= l->taken;
        memmove(l->data, l->data + l->taken, l->size);
        l->taken = 0;
    }
}

enum lines_state lines_read(struct lines *l, int fd) {
    drop_taken(l);
    if (l->size > LINES_MAX) {
        return LINES_BAD;
    }
    char *data = realloc(l->data, l->size + CHUNK);
    if (data == NULL) {
        return LINES_BAD;
    }
    l->data = data;
    ssize_t got = read(fd, data + l->size, CHUNK);
    if (got > 0) {
        l->size += (size_t)got;
        return LINES_MORE;
    }
    if (got == 0) {
        return LINES_EOF;
    }
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? LINES_NOTHING : LINES_BAD;
}

const char *lines_next(struct lines *l, size_t *size) {
    if (l->taken == l->size) {
        return NULL;
    }
    char *start = l->data + l->taken;
    char *newline = memchr(start, '\n', l->size - l->taken);
    if (newline == NULL) {
        return NULL;
    }
    *size = (size_t)(newline - start);
    l->taken += *size + 1;
    return start;
}

void lines_free(struct lines *l) {
    free(l->data);
    memset(l, 0, sizeof *l);
}
