/* Trust in GPU timers; see timing.h. */
#include "timing.h"

#include <stdlib.h>
#include <string.h>

#define SLOW_NS 2000000           /* above it, submitting is noise beside the kernel */
#define SLOPE_BUDGET_NS 20000000  /* time to spend on one slope */
#define SLOPE_CEILING_NS 50000000 /* a kernel slower than this is its own slope */
#define SLOPE_MAX 32
#define SLACK_NS 20000
#define WARMUP_NS 5000000 /* of work in one submission */
#define WARMUP_GROWTH 8   /* at most, because the first ones are mostly the cost of submitting */
#define WARMUP_PASSES 4096

const char *timer_trust_name(enum timer_trust trust) {
    static const char *const names[] = {"absent", "trusted", "disagrees", "disjoint"};
    return names[trust];
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t timing_median(const int64_t *values, size_t count) {
    int64_t *sorted = count == 0 ? NULL : malloc(count * sizeof *sorted);
    if (sorted == NULL) {
        return -1;
    }
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_value);
    int64_t median = sorted[(count - 1) / 2];
    free(sorted);
    return median;
}

int64_t timing_least(const int64_t *values, size_t count) {
    int64_t least = count == 0 ? -1 : values[0];
    for (size_t i = 1; i < count; i++) {
        least = values[i] < least ? values[i] : least;
    }
    return least;
}

unsigned timing_slope_n(const struct timing *t) {
    int64_t wall = timing_median(t->wall_ns, t->count);
    int64_t gpu = timing_median(t->gpu_ns, t->gpu_count);
    if (wall < 0 || t->disjoint) {
        return 0;
    }
    /* A slow kernel without a timer, or with one that is off by half, needs no slope to be judged.
     */
    if (wall > SLOW_NS && gpu < wall / 2) {
        return 0;
    }
    if (wall > SLOPE_CEILING_NS) {
        return 0;
    }
    int64_t n = wall <= 0 ? SLOPE_MAX : SLOPE_BUDGET_NS / wall;
    return n < 2 ? 2 : n > SLOPE_MAX ? SLOPE_MAX : (unsigned)n;
}

unsigned timing_warmup_n(unsigned n, int64_t wall_ns, size_t passes) {
    uint64_t most = passes >= WARMUP_PASSES ? 1 : WARMUP_PASSES / (passes == 0 ? 1 : passes);
    uint64_t grown = (uint64_t)n * WARMUP_GROWTH;
    uint64_t wanted = wall_ns <= 0 ? grown : (uint64_t)n * WARMUP_NS / (uint64_t)wall_ns;
    wanted = wanted < grown ? wanted : grown;
    wanted = wanted < most ? wanted : most;
    return wanted == 0 ? 1 : (unsigned)wanted;
}

bool timing_is_possible(int64_t gpu_ns, int64_t wall_ns) {
    return gpu_ns <= wall_ns + wall_ns / 4 + SLACK_NS;
}

enum timer_trust timing_trust_without_slope(const struct timing *t) {
    if (t->gpu_count == 0) {
        return TIMER_ABSENT;
    }
    if (t->disjoint) {
        return TIMER_DISJOINT;
    }
    int64_t wall = timing_median(t->wall_ns, t->count);
    bool slow = wall > SLOPE_CEILING_NS;
    return slow && !t->impossible && timing_agrees(timing_median(t->gpu_ns, t->gpu_count), wall)
               ? TIMER_TRUSTED
               : TIMER_DISAGREES;
}

int64_t timing_slope(int64_t wall_n_ns, int64_t wall_one_ns, unsigned n) {
    int64_t more = wall_n_ns - wall_one_ns;
    return more <= 0 ? 0 : more / (int64_t)(n - 1);
}

bool timing_agrees(int64_t gpu_ns, int64_t slope_ns) {
    int64_t apart = gpu_ns > slope_ns ? gpu_ns - slope_ns : slope_ns - gpu_ns;
    return slope_ns > 0 && gpu_ns >= slope_ns / 4 && apart <= slope_ns / 4 + SLACK_NS;
}
