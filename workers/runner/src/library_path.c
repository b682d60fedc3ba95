/* Finds the GPU driver in the process's memory map; see library_path.h. */
#include "library_path.h"

#include <string.h>

/* Parts of file names, the most telling first: the library that holds the compiler and the hardware
 * code before the one that only forwards to it. */
static const char *const patterns[] = {
    "libGLES_mali",     /* Arm */
    "libGLESv2_adreno", /* Qualcomm */
    "libGLESv2_powervr",
    "libGLESv2_mtk",
    "libnvidia-eglcore", /* NVIDIA */
    "libgallium",        /* Mesa 24 and later */
    "_dri.so",           /* Mesa before */
    "libGLESv2_swiftshader",
    "libGLESv2_",
    "libGLES_", /* other Android drivers */
    "libEGL_nvidia",
    "libEGL_mesa",
    "libEGL.so",
};
#define PATTERNS (sizeof patterns / sizeof patterns[0])

static size_t rank_of(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t rank = 0;
    while (rank < PATTERNS && strstr(name, patterns[rank]) == NULL) {
        rank++;
    }
    return rank;
}

void library_path_from(FILE *maps, char *path, size_t room) {
    char line[1024];
    size_t best = PATTERNS;
    path[0] = '\0';
    while (fgets(line, sizeof line, maps) != NULL) {
        char *start = strchr(line, '/');
        if (start == NULL) {
            continue;
        }
        start[strcspn(start, "\n")] = '\0';
        size_t rank = rank_of(start);
        if (rank < best) {
            best = rank;
            (void)snprintf(path, room, "%s", start);
        }
    }
}

void library_path(char *path, size_t room) {
    FILE *maps = fopen("/proc/self/maps", "r");
    path[0] = '\0';
    if (maps != NULL) {
        library_path_from(maps, path, room);
        (void)fclose(maps);
    }
}
