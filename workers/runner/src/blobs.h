/* Blobs by their sha256, mapped read-only and checked. Stays open across the cases of a child, so
 * that inputs and references which several cases share are read and hashed once. Reading one sets
 * its modification time: by that the host knows which ones were not used for longest. */
#ifndef TILEFARM_BLOBS_H
#define TILEFARM_BLOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job.h"

#define BLOBS_REASON_SIZE 256
#define BLOBS_KEEP_BYTES (UINT64_C(256) << 20)

struct blob {
    char hash[JOB_HASH_SIZE];
    void *data; /* mapping; NULL for an empty file */
    size_t size;
};

struct blobs {
    const char *folder;
    struct blob *items;
    size_t count;
    uint64_t bytes;
};

/* The blob's bytes stay valid until blobs_trim or blobs_close. False with a reason if it is missing
 * or its content has another hash. */
bool blobs_get(struct blobs *blobs, const char *hash, struct blob *blob,
               char reason[BLOBS_REASON_SIZE]);
/* Between cases: lets go of everything if more than BLOBS_KEEP_BYTES are mapped. */
void blobs_trim(struct blobs *blobs);
void blobs_close(struct blobs *blobs);

#endif
