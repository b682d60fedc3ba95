/* The parent: runs a job's cases in child processes, relays their records, and turns a child that
 * crashes, hangs or writes garbage into the record of the case that it was in. */
#ifndef TILEFARM_SUPERVISE_H
#define TILEFARM_SUPERVISE_H

#include <stdbool.h>

#include "child.h"
#include "job.h"
#include "stage.h"
#include "stream.h"

/* After so many children in a row that could open no driver, the other cases are not tried. */
#define DEAD_CONTEXTS_MAX 3

struct work {
    child_main *run; /* runs the cases from `first` on */
    void *arg;
    const struct stage_board *board; /* shared with the child */
};

/* Shared with children forked later; NULL when memory is short. Never freed: it is needed to the
 * end. */
struct stage_board *stage_board_new(void);

/* SIGINT, SIGTERM and SIGHUP end the running child and the job. */
void supervise_catch_signals(void);

/* False if the reader went away or a signal came; the child is dead by then. */
bool supervise(const struct job *job, struct stream *out, const struct work *work);

#endif
