/* The child's main function: runs cases one after the other and writes their records to the pipe.
 */
#ifndef TILEFARM_EXECUTE_H
#define TILEFARM_EXECUTE_H

#include "child.h"
#include "job.h"
#include "stage.h"

struct execution {
    const struct job *job;
    const char *impose;     /* TILEFARM_IMPOSE or NULL */
    const char *sysfs_root; /* "" is the machine itself */
    struct stage_board *board;
};

/* A child_main; arg is a struct execution. Gives a CHILD_ code. */
int execute_batch(int fd, size_t first, void *arg);

#endif
