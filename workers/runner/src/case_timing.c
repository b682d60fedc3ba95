/* The timed part of a case: warm-up, timed sequences with sensors, slope; see case_run.h. */
#include <stdlib.h>

#include "case_run.h"
#include "clock.h"

bool case_run_once(struct case_run *run, unsigned times, bool timer, struct elapsed *elapsed) {
    struct device *d = run->session->device;
    const struct sequence sequence = {.dispatches = run->dispatches,
                                      .count = run->spec->pass_count};
    run->dispatched = true;
    return d->backend->run(d, &sequence, times, timer, elapsed, &run->failure) || case_fail(run);
}

static bool allocate(struct case_run *run) {
    size_t repeats = run->spec->repeats;
    run->timing.wall_ns = calloc(repeats + 1, sizeof *run->timing.wall_ns);
    run->timing.gpu_ns = calloc(repeats + 1, sizeof *run->timing.gpu_ns);
    run->gpu_hz = calloc(repeats + 1, sizeof *run->gpu_hz);
    run->temp_mc = calloc(repeats + 1, sizeof *run->temp_mc);
    if (run->timing.wall_ns == NULL || run->timing.gpu_ns == NULL || run->gpu_hz == NULL ||
        run->temp_mc == NULL) {
        return case_no_memory(run);
    }
    return true;
}

/* Only sensors that answer every time give a series; one that stops is dropped by case_record's
 * count. */
static void sample(struct case_run *run) {
    const struct reading r = sensors_read(&run->session->sensors);
    if (r.gpu_hz >= 0) {
        run->gpu_hz[run->gpu_hz_count++] = r.gpu_hz;
    }
    if (r.temp_mc >= 0) {
        run->temp_mc[run->temp_count++] = r.temp_mc;
    }
    if (r.throttled > run->throttled) {
        run->throttled = r.throttled; /* once throttled, the case stays marked */
    }
}

static bool time_sequences(struct case_run *run) {
    struct timing *t = &run->timing;
    bool timer = run->session->device->timer_bits > 0;
    for (unsigned i = 0; i < run->spec->repeats; i++) {
        struct elapsed e;
        sample(run);
        if (!case_run_once(run, 1, timer, &e)) {
            return false;
        }
        t->wall_ns[t->count++] = e.wall_ns;
        if (e.gpu_ns >= 0) {
            t->gpu_ns[t->gpu_count++] = e.gpu_ns;
            t->disjoint = t->disjoint || e.disjoint;
            t->impossible = t->impossible || !timing_is_possible(e.gpu_ns, e.wall_ns);
        }
    }
    sample(run);
    return true;
}

static bool measure_slope(struct case_run *run, unsigned n) {
    struct timing *t = &run->timing;
    struct elapsed e;
    if (!case_run_once(run, n, false, &e)) {
        return false;
    }
    t->slope_n = n;
    t->slope_ns = timing_slope(e.wall_ns, timing_least(t->wall_ns, t->count), n);
    return true;
}

/* One hiccup of the machine must not disqualify a good timer: a second slope may still agree. */
static bool judge_timer(struct case_run *run) {
    struct timing *t = &run->timing;
    unsigned n = timing_slope_n(t);
    int64_t gpu = timing_median(t->gpu_ns, t->gpu_count);
    t->trust = timing_trust_without_slope(t);
    for (int attempt = 0; n > 0 && attempt < 2; attempt++) {
        if (!measure_slope(run, n)) {
            return false;
        }
        if (t->gpu_count == 0 || t->impossible) {
            return true;
        }
        t->trust = timing_agrees(gpu, t->slope_ns) ? TIMER_TRUSTED : TIMER_DISAGREES;
        if (t->trust == TIMER_TRUSTED) {
            return true;
        }
    }
    return true;
}

/* A number of sequences warms shaders and caches; only time brings back a clock that fell while the
 * host compared results (decision 0017). */
static bool warm_up(struct case_run *run) {
    int64_t end = clock_ns() + (int64_t)run->spec->warmup_ms * 1000000;
    struct elapsed e;
    for (unsigned i = 0; i < run->spec->warmup; i++) {
        if (!case_run_once(run, 1, false, &e)) {
            return false;
        }
    }
    unsigned n = 1;
    while (clock_ns() < end) {
        if (!case_run_once(run, n, false, &e)) {
            return false;
        }
        n = timing_warmup_n(n, e.wall_ns, run->spec->pass_count);
    }
    return true;
}

bool case_time(struct case_run *run) {
    session_stage(run->session, STAGE_TIMING);
    if (!allocate(run) || !case_refill_inout(run)) {
        return false;
    }
    /* Before the warm-up, because finding a sensor takes long enough for a clock to fall. */
    sensors_follow(&run->session->sensors, run->session->device->driver.vendor,
                   run->session->device->driver.adapter);
    return warm_up(run) && time_sequences(run) && judge_timer(run);
}
