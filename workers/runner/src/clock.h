/* Monotonic time, the only clock the runner reads. */
#ifndef TILEFARM_CLOCK_H
#define TILEFARM_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) {
        return 0; /* cannot fail with this clock on Linux; 0 keeps callers free of a dead branch */
    }
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t clock_ms(void) {
    return clock_ns() / 1000000;
}

#endif
