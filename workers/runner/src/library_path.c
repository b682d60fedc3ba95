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
    NULL,
};

/* Of the first part that the file's name has; past the end of the list if it has none. */
static size_t rank_of(const char *const *parts, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t rank = 0;
    while (parts[rank] != NULL && strstr(name, parts[rank]) == NULL) {
        rank++;
    }
    return rank;
}

static void find(FILE *maps, const char *const *parts, char *path, size_t room) {
    char line[1024];
    size_t best = 0;
    while (parts[best] != NULL) {
        best++;
    }
    path[0] = '\0';
    while (fgets(line, sizeof line, maps) != NULL) {
        char *start = strchr(line, '/');
        if (start == NULL) {
            continue;
        }
        start[strcspn(start, "\n")] = '\0';
        size_t rank = rank_of(parts, start);
        if (rank < best) {
            best = rank;
            (void)snprintf(path, room, "%s", start);
        }
    }
}

void library_path_from(FILE *maps, char *path, size_t room) {
    find(maps, patterns, path, room);
}

void library_path_named(const char *const *parts, char *path, size_t room) {
    FILE *maps = fopen("/proc/self/maps", "r");
    path[0] = '\0';
    if (maps != NULL) {
        find(maps, parts, path, room);
        (void)fclose(maps);
    }
}

void library_path(char *path, size_t room) {
    library_path_named(patterns, path, room);
}
