/* What a child says on stderr: passed on to ours, and its end remembered, because a driver's last
 * words before it aborts are the only log there is. */
#ifndef TILEFARM_CHATTER_H
#define TILEFARM_CHATTER_H

#include <stddef.h>

#define CHATTER_KEPT 4096u

struct chatter {
    char tail[CHATTER_KEPT]; /* not terminated */
    size_t size;
};

/* Takes what has come on the non-blocking fd; text that stderr does not take at once is dropped. */
void chatter_read(struct chatter *chatter, int fd);

#endif
