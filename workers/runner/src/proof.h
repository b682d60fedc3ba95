/* What the proofs of all APIs share: run a small shader on words, look at the words it wrote. */
#ifndef TILEFARM_PROOF_H
#define TILEFARM_PROOF_H

#include "backend.h"

struct trial {
    struct shader shader; /* reads words at binding 0, the first of them as its values, too, and
                           * writes words at binding 1 */
    uint32_t groups;      /* work groups along x */
    const uint32_t *in;
    size_t in_count;
    uint32_t *out; /* starts as zeros */
    size_t out_count;
    struct elapsed elapsed; /* of the run, with the GPU's timer where there is one */
};

bool proof_run(struct device *device, struct trial *trial, struct failure *failure);

/* Swaps 64 pairs of halves with packHalf2x16 and checks every one. The shader does one pair a work
 * group of one invocation. `elapsed` may be NULL. */
bool proof_pack_half(struct device *device, const void *source, size_t size,
                     struct elapsed *elapsed, struct failure *failure);

/* The same shader between two readings of the GPU's timer, which must be apart. */
bool proof_timer(struct device *device, const void *source, size_t size, struct failure *failure);

#endif
