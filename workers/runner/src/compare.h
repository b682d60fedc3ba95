/* Compares an output with its float64 reference, in double. Written so that NaN fails:
 * !(error <= tolerance), never error > tolerance (ROCm/MIOpen#1400). */
#ifndef TILEFARM_COMPARE_H
#define TILEFARM_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job.h"

/* What untouched elements of out and scratch buffers hold; f16 is packed in pairs. */
#define PREFILL_32 UINT32_C(0x7fc0dead)
#define PREFILL_16 UINT16_C(0x7e5a)

/* A reference element with these bits says "must not be finite"; any other NaN there fails. */
#define REFERENCE_NONFINITE UINT64_C(0x7ff8746172666d21)

struct comparison {
    enum dtype dtype;
    size_t count;
    const void *got;
    const double *reference;
    double atol, rtol;
    bool prefilled; /* the buffer started as the NaN pattern, so unwritten elements show */
};

struct mismatch {
    uint64_t index;
    double got, reference;
};

/* Means, maxima and quantiles are over elements finite in both; relative ones also need ref != 0.
 * NaN where there is no such element. */
struct metrics {
    uint64_t unwritten, unwritten_first;
    uint64_t nan, inf, nonfinite_mismatch;
    double max_abs, mean_abs, p99_abs;
    double max_rel, mean_rel, p99_rel;
    double ulp_max, ulp_p50, ulp_p99; /* distance in representable values of the output's type */
    double nmse, cosine, ref_absmax;
    uint64_t failing;
    struct mismatch first_bad, worst; /* meaningful if failing > 0 */
};

/* False when memory is short. */
bool compare(const struct comparison *c, struct metrics *m);

/* Only `unwritten` and `unwritten_first`: for outputs without a reference. */
void count_unwritten(const struct comparison *c, struct metrics *m);

/* Passes: no failing or unwritten element and NMSE within its bound. */
bool metrics_pass(const struct metrics *m, double nmse_bound);

#endif
