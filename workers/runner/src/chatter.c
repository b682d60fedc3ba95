/* A child's stderr; see chatter.h. */
#include "chatter.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#define PORTION                                                                                    \
    4096 /* PIPE_BUF: as much as a pipe that can be written to takes without blocking              \
          */
#define PORTIONS_MAX 32

static void remember(struct chatter *c, const char *text, size_t size) {
    size_t keep = c->size < CHATTER_KEPT - size ? c->size : CHATTER_KEPT - size;
    memmove(c->tail, c->tail + c->size - keep, keep);
    memcpy(c->tail + keep, text, size);
    c->size = keep + size;
}

static void pass_on(const char *text, size_t size) {
    struct pollfd ours = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&ours, 1, 0) == 1 && (ours.revents & POLLOUT) != 0) {
        ssize_t written = write(STDERR_FILENO, text, size);
        (void)written; /* words for people: nothing depends on them */
    }
}

void chatter_read(struct chatter *chatter, int fd) {
    char text[PORTION];
    for (int i = 0; i < PORTIONS_MAX; i++) { /* a child that floods must not hold us here */
        ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text);
        if (got <= 0) {
            return;
        }
        pass_on(text, (size_t)got);
        remember(chatter, text, (size_t)got);
    }
}
