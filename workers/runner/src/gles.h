/* The GLES 3.1 backend: EGL without a window system, compute shaders, buffers,
 * EXT_disjoint_timer_query. */
#ifndef TILEFARM_GLES_H
#define TILEFARM_GLES_H

#include "backend.h"

extern const struct backend gles_backend;

#endif
