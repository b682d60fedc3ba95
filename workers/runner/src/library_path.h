/* Which driver library this process really loaded (a loader may silently fall through to another
 * driver: ggml-org/llama.cpp#28891). */
#ifndef TILEFARM_LIBRARY_PATH_H
#define TILEFARM_LIBRARY_PATH_H

#include <stddef.h>
#include <stdio.h>

/* The GLES driver in /proc/self/maps; "" where nothing there looks like one. */
void library_path(char *path, size_t room);
/* The same on any text of that format. */
void library_path_from(FILE *maps, char *path, size_t room);

/* The file in /proc/self/maps whose name has the first of those parts (the list ends with NULL)
 * that any has; "" if none has one. */
void library_path_named(const char *const *parts, char *path, size_t room);

#endif
