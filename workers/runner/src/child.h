/* A forked child with a pipe to its parent: everything that touches a GPU driver runs in one. */
#ifndef TILEFARM_CHILD_H
#define TILEFARM_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Exit codes with a meaning between child and parent. */
#define CHILD_DONE 0
#define CHILD_NO_DEVICE 71 /* no driver could be opened; it said so in an end record */
#define CHILD_RENEW 72     /* the context was lost; the other cases need a new child */
#define CHILD_BROKEN 73    /* out of memory, or its pipe broke */
#define CHILD_AGAIN 74   /* the context was lost before the open case did anything: not its fault */
#define CHILD_INVALID 75 /* the validation layer complained when a device was closed */

/* Runs in the child; writes whole lines to fd; its result is the exit code. */
typedef int child_main(int fd, size_t first, void *arg);

struct child {
    pid_t pid; /* 0: none */
    int fd;    /* reading end, non-blocking */
    int heard; /* the same of its stderr; -1 where that is ours */
};

/* The child's stdout becomes stderr (drivers print), it dies with its parent, and nothing of the
 * parent's buffers is written twice. False with errno. */
bool child_start(struct child *child, child_main *run, size_t first, void *arg);
/* The same, and its stderr is a pipe to us: whoever starts it must read child->heard. */
bool child_start_heard(struct child *child, child_main *run, size_t first, void *arg);

/* Waits up to patience_ms for the end of a child; true if its wait status is known. */
bool child_reap(struct child *child, int patience_ms, int *status);

/* SIGKILL, then reap. A process that is stuck in the kernel is left behind after some seconds. */
void child_kill(struct child *child);

void child_close(struct child *child); /* the pipes */

#endif
