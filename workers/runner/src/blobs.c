/* Content-addressed files; see blobs.h. */
#include "blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sha256.h"

static bool refuse(char reason[BLOBS_REASON_SIZE], const char *hash, const char *what) {
    (void)snprintf(reason, BLOBS_REASON_SIZE, "blob %s: %.150s", hash, what);
    return false;
}

static int open_file(const char *folder, const char *hash) {
    size_t room = strlen(folder) + JOB_HASH_SIZE + 1;
    char *path = malloc(room);
    if (path == NULL) {
        errno = ENOMEM;
        return -1;
    }
    (void)snprintf(path, room, "%s/%s", folder, hash);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    return fd;
}

static bool map_file(int fd, struct blob *blob) {
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return false;
    }
    if (!S_ISREG(info.st_mode) || (uint64_t)info.st_size > SIZE_MAX / 2) {
        errno = EFBIG;
        return false;
    }
    blob->size = (size_t)info.st_size;
    blob->data = NULL;
    if (blob->size > 0) {
        void *data = mmap(NULL, blob->size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            return false;
        }
        blob->data = data;
    }
    return true;
}

static void unmap(struct blob *blob) {
    if (blob->data != NULL) {
        (void)munmap(blob->data, blob->size);
    }
}

static bool load(const char *folder, const char *hash, struct blob *blob,
                 char reason[BLOBS_REASON_SIZE]) {
    int fd = open_file(folder, hash);
    if (fd < 0) {
        return refuse(reason, hash, strerror(errno));
    }
    bool mapped = map_file(fd, blob);
    int error = errno;
    (void)futimens(fd, NULL); /* it is used now (blobs.h) */
    (void)close(fd);
    if (!mapped) {
        return refuse(reason, hash, strerror(error));
    }
    sha256_of(blob->data, blob->size, blob->hash);
    if (strcmp(blob->hash, hash) != 0) {
        unmap(blob);
        return refuse(reason, hash, "its content has another sha256");
    }
    return true;
}

bool blobs_get(struct blobs *blobs, const char *hash, struct blob *blob,
               char reason[BLOBS_REASON_SIZE]) {
    for (size_t i = 0; i < blobs->count; i++) {
        if (strcmp(blobs->items[i].hash, hash) == 0) {
            *blob = blobs->items[i];
            return true;
        }
    }
    if (!load(blobs->folder, hash, blob, reason)) {
        return false;
    }
    struct blob *items = realloc(blobs->items, (blobs->count + 1) * sizeof *items);
    if (items == NULL) {
        unmap(blob);
        return refuse(reason, hash, "out of memory");
    }
    blobs->items = items;
    items[blobs->count++] = *blob;
    blobs->bytes += blob->size;
    return true;
}

void blobs_close(struct blobs *blobs) {
    for (size_t i = 0; i < blobs->count; i++) {
        unmap(&blobs->items[i]);
    }
    free(blobs->items);
    blobs->items = NULL;
    blobs->count = 0;
    blobs->bytes = 0;
}

void blobs_trim(struct blobs *blobs) {
    if (blobs->bytes > BLOBS_KEEP_BYTES) {
        blobs_close(blobs);
    }
}
