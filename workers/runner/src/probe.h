/* What a device can do: limits, extensions, and features that a shader here really used. */
#ifndef TILEFARM_PROBE_H
#define TILEFARM_PROBE_H

#include "child.h"

struct probe {
    const char *api;
    const char *impose; /* TILEFARM_IMPOSE or NULL */
};

/* A child_main; arg is a struct probe. Writes the profile record to fd. */
int probe_child(int fd, size_t first, void *arg);

/* Runs it in a child and relays its record and the final one to out_fd. Gives the exit code of the
 * program; reasons go to stderr. */
int probe_run(struct probe *probe, int out_fd);

#endif
