/* When to believe a GPU timer. llvmpipe's said 1 ns for any dispatch, so a timer counts only where
 * the wall clock agrees: the slope of wall time over N sequences back to back, which leaves out the
 * cost of submitting and waiting. */
#ifndef TILEFARM_TIMING_H
#define TILEFARM_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum timer_trust { TIMER_ABSENT, TIMER_TRUSTED, TIMER_DISAGREES, TIMER_DISJOINT };

struct timing {
    int64_t first_ns;
    int64_t *wall_ns, *gpu_ns; /* one a timed sequence */
    size_t count, gpu_count;   /* gpu_count: count, or 0 without a timer */
    bool disjoint;             /* in any of them */
    bool impossible;           /* some GPU time is longer than its sequence took */
    int64_t slope_ns;
    unsigned slope_n; /* 0: no slope was measured */
    enum timer_trust trust;
};

const char *timer_trust_name(enum timer_trust trust);
/* Not longer than the wall time, but for 25 % and 20 µs: a counter that wrapped around unnoticed
 * gives such. */
bool timing_is_possible(int64_t gpu_ns, int64_t wall_ns);
/* Median (lower of the two middle ones); -1 for none, or when memory is short. */
int64_t timing_median(const int64_t *values, size_t count);
/* Smallest; -1 for none. */
int64_t timing_least(const int64_t *values, size_t count);
/* How many sequences to run for the slope; 0 if the slope would tell nothing that its time is
 * worth. */
unsigned timing_slope_n(const struct timing *t);
/* How many sequences of so many passes the next submission of a warm-up should hold, after one of n
 * that took wall_ns: about 5 ms of work, so that a short kernel does not leave the GPU idle while
 * the host submits. */
unsigned timing_warmup_n(unsigned n, int64_t wall_ns, size_t passes);
/* The verdict where no slope is needed (timing_slope_n gives 0): a sequence of over 50 ms is its
 * own slope. */
enum timer_trust timing_trust_without_slope(const struct timing *t);
/* Wall time of n sequences less that of one, by sequence. */
int64_t timing_slope(int64_t wall_n_ns, int64_t wall_one_ns, unsigned n);
/* Within 25 % and 20 µs of the slope, and not below a quarter of it: the slack, which is for the
 * cost of submitting short kernels, must not excuse a timer that stands still. */
bool timing_agrees(int64_t gpu_ns, int64_t slope_ns);

#endif
