/* The part of probe that touches a driver: it runs in child processes. */
#ifndef TILEFARM_PROBE_CHILD_H
#define TILEFARM_PROBE_CHILD_H

#include <stdatomic.h>

#include "backend.h"

enum proof_state {
    PROOF_NOT_RUN, /* not advertised, taken away, or no shader can prove it */
    PROOF_RUNNING,
    PROOF_GOOD,
    PROOF_FAILED
};

/* Lives in memory that parent and children share: what is known must outlive a crash. */
struct probe_board {
    atomic_int states[FEATURE_COUNT];
    char reasons[FEATURE_COUNT][256]; /* of those that failed; the last byte is always NUL */
    atomic_uint subgroup;             /* see struct evidence */
    atomic_bool invalid; /* a message of TILEFARM_VALIDATE came: a mistake of this program */
};

struct probe_target {
    const struct backend *backend;
    const char *adapter;
    const char *impose;
    struct probe_board *board;
};

/* Both are a child_main (child.h); `arg` is a struct probe_target.
 *
 * probe_list_child writes "ADAPTER\n" for each GPU of the backend.
 *
 * probe_child writes ".\n" when the device is open and before each proof from the `first` one on,
 * then the profile record. */
int probe_list_child(int fd, size_t first, void *arg);
int probe_child(int fd, size_t first, void *arg);

#endif
