/* The way of one case through its stages; see case_run.h. */
#include "case_run.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

bool case_fail(struct case_run *run) {
    switch (run->failure.kind) {
    case FAULT_COMPILE:
    case FAULT_LINK:
        run->status = CASE_COMPILE_FAILED;
        break;
    case FAULT_LOST: /* it is this kernel that took the context down (but see case_execute) */
        run->status = CASE_CRASHED;
        break;
    case FAULT_UNSUPPORTED:
        run->status = CASE_UNSUPPORTED;
        break;
    default:
        run->status = CASE_ERROR;
    }
    return false;
}

bool case_no_memory(struct case_run *run) {
    (void)fail(&run->failure, FAULT_MEMORY, "out of memory");
    return case_fail(run);
}

static bool preflight(struct case_run *run) {
    if (limits_fit_case(&run->session->device->limits, run->spec, run->failure.reason)) {
        return true;
    }
    run->status = CASE_UNSUPPORTED;
    return false;
}

static void rest(struct case_run *run) {
    unsigned ms = run->spec->idle_ms;
    struct timespec nap = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    session_stage(run->session, STAGE_REST);
    while (nanosleep(&nap, &nap) != 0 && errno == EINTR) {
    }
}

/* Freshly prefilled buffers, one sequence, outputs read back. The rest stands right before the
 * dispatch, because filling buffers may wake the GPU. */
static bool verified_sequence(struct case_run *run, struct elapsed *elapsed) {
    if (!case_prefill(run)) {
        return false;
    }
    if (run->rested) {
        rest(run);
    }
    session_stage(run->session, STAGE_DISPATCH);
    return case_run_once(run, 1, false, elapsed) && case_read_outputs(run);
}

static bool has_inout(const struct job_case *c) {
    for (size_t i = 0; i < c->buffer_count; i++) {
        if (c->buffers[i].role == ROLE_INOUT) {
            return true;
        }
    }
    return false;
}

/* Timed sequences run on what the ones before left, so their result says nothing if it feeds on
 * itself. */
static bool timed_part(struct case_run *run) {
    const struct job_case *c = run->spec;
    bool runs = c->repeats > 0 || c->warmup > 0 || c->warmup_ms > 0;
    return !runs || (case_time(run) && (has_inout(c) || case_read_outputs(run)));
}

/* A GPU that has clocked down may fail where a busy one does not (executorch#21939). */
static bool replay(struct case_run *run) {
    struct elapsed elapsed;
    for (unsigned i = 1; i < run->spec->replays; i++) {
        if (!verified_sequence(run, &elapsed)) {
            return false;
        }
    }
    run->rested = true;
    for (unsigned i = 0; i < run->spec->idle_replays; i++) {
        if (!verified_sequence(run, &elapsed)) {
            return false;
        }
    }
    run->rested = false;
    return case_check_guards(run);
}

static bool verify(struct case_run *run) {
    session_stage(run->session, STAGE_VERIFY);
    for (size_t i = 0; i < run->spec->buffer_count; i++) {
        struct case_buffer *b = &run->buffers[i];
        const struct comparison comparison = {
            .dtype = b->spec->dtype,
            .count = (size_t)b->spec->count,
            .got = b->output == NULL ? NULL : b->output->first,
            .reference = b->reference.data,
            .atol = b->spec->atol,
            .rtol = b->spec->rtol,
            .prefilled = b->spec->role == ROLE_OUT,
        };
        if (b->spec->checked && !compare(&comparison, &b->output->metrics)) {
            return case_no_memory(run);
        }
        if (b->output != NULL && !b->spec->checked) {
            count_unwritten(&comparison, &b->output->metrics);
        }
    }
    return true;
}

static bool output_failed(const struct case_buffer *b) {
    const struct output *o = b->output;
    bool wrong =
        b->spec->checked ? !metrics_pass(&o->metrics, b->spec->nmse) : o->metrics.unwritten > 0;
    return wrong || o->hash_count > 1;
}

static bool failed(const struct case_run *run) {
    bool any = false;
    for (size_t i = 0; i < run->spec->buffer_count; i++) {
        const struct case_buffer *b = &run->buffers[i];
        any = any || b->damaged || (b->output != NULL && output_failed(b));
    }
    return any;
}

static void keep_tensors(struct case_run *run) {
    bool wrong = failed(run);
    for (size_t i = 0; i < run->spec->buffer_count; i++) {
        if (run->buffers[i].output != NULL) {
            output_keep(&run->buffers[i], run->session->job, run->spec, wrong);
        }
    }
}

static bool go(struct case_run *run) {
    struct elapsed first;
    if (!preflight(run) || !case_compile(run) || !case_allocate(run) ||
        !verified_sequence(run, &first)) {
        return false;
    }
    run->timing.first_ns = first.wall_ns;
    if (!timed_part(run) || !replay(run) || !verify(run)) {
        return false;
    }
    keep_tensors(run);
    return true;
}

enum case_fate case_execute(struct session *session, const struct job_case *c, size_t index,
                            bool fresh, struct json *record) {
    struct case_run run = {.session = session, .spec = c, .throttled = -1};
    (void)go(&run);
    bool lost = run.failure.kind == FAULT_LOST;
    /* Lost before this case gave the GPU anything to do: an earlier one took it down. */
    bool again = lost && !run.dispatched && !fresh;
    if (!again) {
        case_record(&run, index, record);
    }
    case_free_buffers(&run);
    free(run.dispatches);
    free(run.compile_ns);
    free(run.timing.wall_ns);
    free(run.timing.gpu_ns);
    free(run.gpu_hz);
    free(run.temp_mc);
    free(run.log.text);
    return again ? CASE_AGAIN : lost ? CASE_LOST : CASE_CLOSED;
}
