/* Which driver library this process really loaded (a loader may silently fall through to another
 * driver: ggml-org/llama.cpp#28891). */
#ifndef TILEFARM_LIBRARY_PATH_H
#define TILEFARM_LIBRARY_PATH_H

#include <stddef.h>
#include <stdio.h>

/* From /proc/self/maps; "" where nothing there looks like a GPU driver. */
void library_path(char *path, size_t room);
/* The same on any text of that format. */
void library_path_from(FILE *maps, char *path, size_t room);

#endif
