/* SHA-256 (FIPS 180-4), incremental: names of blobs, digests of outputs and of the result stream.
 */
#ifndef TILEFARM_SHA256_H
#define TILEFARM_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_HEX_SIZE 65 /* 64 hex digits and a NUL */

struct sha256 {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t size);
/* Finishes a copy, so that the stream can go on afterwards. */
void sha256_hex(const struct sha256 *s, char hex[SHA256_HEX_SIZE]);
void sha256_of(const void *data, size_t size, char hex[SHA256_HEX_SIZE]);

#endif
