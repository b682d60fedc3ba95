/* The probe command: what each GPU can do, as limits, facts, and features that a shader here really
 * used. */
#ifndef TILEFARM_PROBE_H
#define TILEFARM_PROBE_H

#include "child.h"

struct probe {
    const char *api;    /* NULL: all that this runner was built with */
    const char *impose; /* TILEFARM_IMPOSE or NULL */
    int proof_ms;       /* after which a proof hangs; 0: 20 s */
};

/* Writes one profile record for each API and GPU that opens, and the final one, to out_fd. Every
 * driver is opened in a child; a proof that crashes or hangs costs its feature only. Gives the exit
 * code of the program; reasons go to stderr. */
int probe_run(const struct probe *probe, int out_fd);

#endif
