/* The backends of this build. Tests link fake_backend.c in its place. */
#include <string.h>

#include "backend.h"
#include "gles.h"
#include "vk.h"

const struct backend *backend_find(const char *api) {
    static const struct backend *const all[] = {&gles_backend, &vk_backend};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(api, all[i]->api) == 0) {
            return all[i];
        }
    }
    return NULL;
}
