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
    if (l->room - l->size < CHUNK) {
        size_t room = 2 * l->room + CHUNK;
        char *data = realloc(l->data, room);
        if (data == NULL) {
            return LINES_BAD;
        }
        l->data = data;
        l->room = room;
    }
    ssize_t got = read(fd, l->data + l->size, CHUNK);
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
    size_t waiting = l->size - l->taken;
    if (waiting == l->scanned) {
        return NULL;
    }
    char *start = l->data + l->taken;
    char *newline = memchr(start + l->scanned, '\n', waiting - l->scanned);
    if (newline == NULL) {
        l->scanned = waiting;
        return NULL;
    }
    *size = (size_t)(newline - start);
    l->taken += *size + 1;
    l->scanned = 0;
    return start;
}

void lines_free(struct lines *l) {
    free(l->data);
    memset(l, 0, sizeof *l);
}
