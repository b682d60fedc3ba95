/* Cuts what comes through a non-blocking pipe into lines, within bounds: a child may write
 * anything. */
#ifndef TILEFARM_LINES_H
#define TILEFARM_LINES_H

#include <stdbool.h>
#include <stddef.h>

#define LINES_MAX (4u << 20) /* bytes of one line */

enum lines_state { LINES_MORE, LINES_NOTHING, LINES_EOF, LINES_BAD };

struct lines {
    char *data;
    size_t size, room;
    size_t taken;   /* bytes already handed out */
    size_t scanned; /* bytes known to hold no newline after those */
};

/* Reads once, at most 64 KiB, so that a flood leaves the caller its turn. LINES_BAD: a line beyond
 * LINES_MAX, a read error, or no memory. */
enum lines_state lines_read(struct lines *l, int fd);
/* The next complete line without its newline, or NULL. Valid until the next lines_read. */
const char *lines_next(struct lines *l, size_t *size);
void lines_free(struct lines *l);

#endif
