/* The stages of a case, as the result stream names them. The child publishes the one that it is in
 * through shared memory, so that the parent can say where it crashed or hung. */
#ifndef TILEFARM_STAGE_H
#define TILEFARM_STAGE_H

#include <stdatomic.h>

enum stage {
    STAGE_CONTEXT,
    STAGE_BUFFERS,
    STAGE_COMPILE,
    STAGE_LINK,
    STAGE_DISPATCH,
    STAGE_READBACK,
    STAGE_VERIFY,
    STAGE_TIMING,
    STAGE_REST, /* before a replay that is to find the GPU idle */
    STAGE_COUNT
};

/* Lives in memory that parent and child share. */
struct stage_board {
    atomic_int stage;
};

/* Never NULL; "unknown" for a value outside the enum (shared memory is not trusted). */
const char *stage_name(int stage);

#endif
