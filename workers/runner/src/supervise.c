/* Supervision of child processes; see supervise.h. */
#include "supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "chatter.h"
#include "clock.h"
#include "lines.h"
#include "verdicts.h"

#define GOODBYE_MS 5000 /* for a child whose cases are all done */

static volatile sig_atomic_t stop_signal;

static void on_signal(int number) {
    stop_signal = number;
}

void supervise_catch_signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
}

struct stage_board *stage_board_new(void) {
    void *memory = mmap(NULL, sizeof(struct stage_board), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

enum phase {
    PHASE_BEFORE, /* no case is open: the driver is being opened, or a case was just ended */
    PHASE_CASE,   /* between start and end */
    PHASE_DONE    /* all cases have their end record */
};

struct watch {
    const struct job *job;
    struct stream *out;
    const struct work *work;
    struct child child;
    struct lines lines;
    struct chatter chatter;
    bool deaf; /* nobody writes to its stderr any more */
    enum phase phase;
    size_t first, next; /* the child's first case; the case to come, or the open one */
    int64_t deadline_ms;
    unsigned dead_contexts;
};

static const struct job_case *current(const struct watch *w) {
    return &w->job->cases[w->next];
}

static void enter(struct watch *w, enum phase phase) {
    bool done = w->next == w->job->case_count;
    w->phase = done ? PHASE_DONE : phase;
    w->deadline_ms = clock_ms() + (done ? GOODBYE_MS : (int64_t)current(w)->deadline_ms);
}

/* Writes the end record that the child owes. */
static bool settle(struct watch *w, const struct verdict *verdict) {
    bool good = verdict_write(w->out, current(w), w->next, w->phase == PHASE_CASE, verdict);
    w->next++;
    enter(w, PHASE_BEFORE);
    return good;
}

static bool settle_context(struct watch *w, const char *reason) {
    const struct verdict verdict = {
        .status = "error", .stage = STAGE_CONTEXT, .reason = reason, .number = -1};
    w->dead_contexts++;
    return settle(w, &verdict);
}

/* The child died, hung or went mad while it opened the driver or between two cases. */
static bool settle_before(struct watch *w, const char *reason) {
    if (w->phase == PHASE_DONE || w->next > w->first) {
        return true; /* nothing is owed; the next child begins with the next case */
    }
    return settle_context(w, reason);
}

static bool settle_death(struct watch *w, int status) {
    bool exited = WIFEXITED(status);
    int number = exited ? WEXITSTATUS(status) : WTERMSIG(status);
    if (exited && number == CHILD_INVALID) {
        return false; /* a mistake of this program, which said so on stderr: no final record */
    }
    if (exited && number == CHILD_AGAIN && w->next > w->first) {
        return true; /* the next child starts the open case once more; there it is the first one */
    }
    if (w->phase == PHASE_CASE) {
        bool memory = exited && number == CHILD_BROKEN;
        const struct verdict verdict = {
            .status = memory ? "error" : "crashed",
            .stage = atomic_load(&w->work->board->stage),
            .reason = memory ? "the runner's child ran out of memory" : NULL,
            .number_key = memory   ? NULL
                          : exited ? "exit_code"
                                   : "signal",
            .number = number,
            .log = &w->chatter,
        };
        return settle(w, &verdict);
    }
    if (exited && (number == CHILD_DONE || number == CHILD_RENEW) && w->next > w->first) {
        return true;
    }
    if (exited && number == CHILD_NO_DEVICE && w->next > w->first) {
        w->dead_contexts++;
        return true;
    }
    char reason[96];
    (void)snprintf(reason, sizeof reason, "the process died (%s %d) while it opened the driver",
                   exited ? "exit code" : "signal", number);
    return settle_before(w, reason);
}

static bool settle_hang(struct watch *w) {
    if (w->phase == PHASE_CASE) {
        const struct verdict verdict = {
            .status = "hung",
            .stage = atomic_load(&w->work->board->stage),
            .number_key = "deadline_ms",
            .number = current(w)->deadline_ms,
            .log = &w->chatter,
        };
        return settle(w, &verdict);
    }
    return settle_before(w, "opening the driver took longer than the case may take");
}

static bool settle_garbage(struct watch *w) {
    if (w->phase == PHASE_CASE) {
        const struct verdict verdict = {
            .status = "crashed",
            .stage = atomic_load(&w->work->board->stage),
            .reason = "the child wrote garbage where a record should be: its memory was damaged",
            .number_key = "signal",
            .number = SIGKILL,
        };
        return settle(w, &verdict);
    }
    return settle_before(w, "the child wrote garbage while it opened the driver");
}

/* Relays one line of the child. False if it is not what the child may write now. */
static bool relay(struct watch *w, const char *line, size_t size) {
    enum line_kind kind =
        line_kind(line, size, w->phase == PHASE_DONE ? NULL : current(w), w->next);
    bool fits = (kind == LINE_DRIVER && w->phase == PHASE_BEFORE) ||
                (kind == LINE_START && w->phase == PHASE_BEFORE) ||
                (kind == LINE_END && w->phase == PHASE_CASE);
    if (!fits) {
        return false;
    }
    (void)stream_write(w->out, line,
                       size + 1); /* with its newline; a broken stream is seen later */
    if (kind == LINE_DRIVER) {
        w->dead_contexts = 0;
    } else if (kind == LINE_START) {
        enter(w, PHASE_CASE);
    } else {
        w->out->ends++;
        w->next++;
        enter(w, PHASE_BEFORE);
    }
    return true;
}

/* Relays what has come. */
static enum lines_state pump(struct watch *w) {
    enum lines_state state = lines_read(&w->lines, w->child.fd);
    size_t size = 0;
    for (const char *line = lines_next(&w->lines, &size); line != NULL;
         line = lines_next(&w->lines, &size)) {
        if (!relay(w, line, size)) {
            return LINES_BAD;
        }
    }
    return state;
}

static void wait_for_child(struct watch *w) {
    int64_t now = clock_ms();
    int64_t beat = w->out->written_ms + w->job->heartbeat_ms;
    int64_t until = beat < w->deadline_ms ? beat : w->deadline_ms;
    struct pollfd pipes[] = {{.fd = w->child.fd, .events = POLLIN},
                             {.fd = w->child.heard, .events = POLLIN}};
    (void)poll(pipes, w->deaf ? 1 : 2, until <= now ? 0 : (int)(until - now));
    chatter_read(&w->chatter, w->child.heard);
    w->deaf = (pipes[1].revents & POLLHUP) != 0; /* or poll would return at once for ever */
}

enum fate { FATE_EOF, FATE_HUNG, FATE_GARBAGE, FATE_STOPPED };

static enum fate watch_child(struct watch *w, int *status, bool *reaped) {
    for (;;) {
        wait_for_child(w);
        enum lines_state state = pump(w);
        if (w->out->broken || stop_signal != 0) {
            return FATE_STOPPED;
        }
        if (state == LINES_BAD) {
            return FATE_GARBAGE;
        }
        if (state == LINES_EOF) {
            return FATE_EOF;
        }
        /* A helper process of the driver may hold the pipe open after the child's death. */
        if (state == LINES_NOTHING && child_reap(&w->child, 0, status)) {
            *reaped = true;
            return pump(w) == LINES_BAD ? FATE_GARBAGE : FATE_EOF;
        }
        if (clock_ms() >= w->deadline_ms) {
            return FATE_HUNG;
        }
        if (clock_ms() - w->out->written_ms >= w->job->heartbeat_ms && !stream_beat(w->out)) {
            return FATE_STOPPED;
        }
    }
}

static bool settle_fate(struct watch *w, enum fate fate, bool reaped, int status) {
    if (fate == FATE_EOF && !reaped) {
        int64_t left = w->deadline_ms - clock_ms();
        reaped = child_reap(&w->child, left > 0 ? (int)left : 0, &status);
        fate = reaped ? FATE_EOF : FATE_HUNG; /* it closed the pipe and lives on */
    }
    child_kill(&w->child);
    chatter_read(&w->chatter, w->child.heard);
    switch (fate) {
    case FATE_EOF:
        return settle_death(w, status);
    case FATE_HUNG:
        return settle_hang(w);
    case FATE_GARBAGE:
        return settle_garbage(w);
    default:
        return false;
    }
}

static bool run_child(struct watch *w) {
    w->first = w->next;
    w->chatter.size = 0;
    w->deaf = false;
    enter(w, PHASE_BEFORE);
    if (!child_start_heard(&w->child, w->work->run, w->next, w->work->arg)) {
        return settle_context(w, strerror(errno));
    }
    int status = 0;
    bool reaped = false;
    enum fate fate = watch_child(w, &status, &reaped);
    bool go_on = settle_fate(w, fate, reaped, status);
    child_close(&w->child);
    lines_free(&w->lines);
    return go_on;
}

bool supervise(const struct job *job, struct stream *out, const struct work *work) {
    struct watch w = {.job = job, .out = out, .work = work, .child = {.fd = -1, .heard = -1}};
    bool go_on = true;
    while (go_on && w.next < job->case_count) {
        if (w.dead_contexts >= DEAD_CONTEXTS_MAX) {
            w.phase = PHASE_BEFORE;
            go_on = settle_context(&w, "not tried: no driver could be opened three times in a row");
        } else {
            go_on = run_child(&w);
        }
    }
    return go_on && !out->broken && stop_signal == 0;
}
