/* A wrong wall clock for one process (LD_PRELOAD): CHAOS_CLOCK_S seconds ahead. Monotonic clocks stay right.
 *
 * libfaketime 0.9.10 does the same, but with it time.sleep of Python 3.11 fails (EINVAL). */

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t ahead(void) {
    const char *text = getenv("CHAOS_CLOCK_S");
    return text ? (time_t)strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t id, struct timespec *out) {
    int code = (int)syscall(SYS_clock_gettime, id, out);
    if (code == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) out->tv_sec += ahead();
    return code;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    (void)zone;
    struct timespec now;
    int code = clock_gettime(CLOCK_REALTIME, &now);
    if (code == 0) *out = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return code;
}

time_t time(time_t *out) {
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
