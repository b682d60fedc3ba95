/* The backends of this build. Tests link fake_backend.c in its place. */
#include <string.h>

#include "backend.h"
#include "gles.h"

const struct backend *backend_find(const char *api) {
    return strcmp(api, gles_backend.api) == 0 ? &gles_backend : NULL;
}
