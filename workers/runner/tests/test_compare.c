/* The comparator: what must fail, and the numbers it reports. */
#include <math.h>

#include "check.h"
#include "compare.h"
#include "half.h"

static struct metrics run(enum dtype dtype, const void *got, const double *reference, size_t count,
                          double atol, double rtol) {
    const struct comparison c = {.dtype = dtype,
                                 .count = count,
                                 .got = got,
                                 .reference = reference,
                                 .atol = atol,
                                 .rtol = rtol,
                                 .prefilled = true};
    struct metrics m;
    CHECK(compare(&c, &m));
    return m;
}

static bool passes(const float *got, const double *reference, size_t count, double atol,
                   double rtol) {
    struct metrics m = run(DTYPE_F32, got, reference, count, atol, rtol);
    return metrics_pass(&m, 1e-6);
}

/* Field case G4-01: NaN > tolerance is false. */
static void nan_and_infinity_fail(void) {
    const double reference[] = {1, 2}, nans[] = {NAN, NAN}, infinite[] = {1, INFINITY};
    const float good[] = {1, 2}, nan[] = {1, NAN}, inf[] = {1, INFINITY}, all[] = {NAN, NAN};
    CHECK(passes(good, reference, 2, 0, 0));
    CHECK(!passes(nan, reference, 2, 1e9, 1e9));
    CHECK(!passes(inf, reference, 2, 1e9, 1e9));
    CHECK(!passes(all, nans, 2, 1e9, 1e9)); /* a NaN in the reference is a mistake, not a wish */
    CHECK(!passes(good, nans, 2, 1e9, 1e9));
    CHECK(!passes(good, infinite, 2, 1, 1)); /* atol + rtol·∞ would let anything pass */
    CHECK(passes(inf, infinite, 2, 0, 0));
    const float minus[] = {1, -INFINITY};
    CHECK(!passes(minus, infinite, 2, 1, 1));
    struct metrics m = run(DTYPE_F32, nan, reference, 2, 0, 0);
    CHECK(m.nan == 1 && m.inf == 0 && m.nonfinite_mismatch == 1 && m.failing == 1);
    CHECK(m.first_bad.index == 1 && m.worst.index == 1 && isnan(m.worst.got));
    CHECK(m.max_abs == 0 && m.mean_abs == 0 && m.nmse == 0); /* of the finite one */
}

/* N15: a row that must be non-finite is asked for by bits. */
static void nonfinite_can_be_demanded(void) {
    const uint64_t bits = REFERENCE_NONFINITE;
    double reference[2] = {1, 0};
    memcpy(&reference[1], &bits, sizeof bits);
    const float nan[] = {1, NAN}, inf[] = {1, INFINITY}, zero[] = {1, 0};
    CHECK(passes(nan, reference, 2, 0, 0) && passes(inf, reference, 2, 0, 0));
    CHECK(!passes(zero, reference, 2, 1e9, 1e9));
    CHECK(passes(nan + 1, reference + 1, 1, 0, 0)); /* nothing finite at all */
}

/* Zeros against spikes of 1e-4 pass atol, and must not pass NMSE. */
static void near_zero_reference_needs_nmse(void) {
    float zeros[64] = {0};
    double spikes[64] = {0};
    spikes[3] = spikes[40] = 1e-4;
    struct metrics m = run(DTYPE_F32, zeros, spikes, 64, 1e-3, 0);
    CHECK(m.failing == 0 && m.nmse == 1 && m.cosine == 0);
    CHECK(!metrics_pass(&m, 1e-6));
    const double none[64] = {0};
    m = run(DTYPE_F32, zeros, none, 64, 0, 0);
    CHECK(m.nmse == 0 && m.cosine == 1 && metrics_pass(&m, 0) && isnan(m.max_rel));
    zeros[0] = 1;
    m = run(DTYPE_F32, zeros, none, 64, 2, 0);
    CHECK(isinf(m.nmse) && !metrics_pass(&m, 1));
}

static void unwritten_elements_show(void) {
    uint32_t words[4] = {PREFILL_32, 0, PREFILL_32, 0x7fc00000};
    const double zeros[4] = {0};
    struct metrics m = run(DTYPE_F32, words, zeros, 4, 1, 1);
    CHECK(m.unwritten == 2 && m.unwritten_first == 0 && m.nan == 3 && m.failing == 3);
    const double as_numbers[4] = {PREFILL_32, 0, PREFILL_32, 0x7fc00000};
    m = run(DTYPE_U32, words, as_numbers, 4, 0, 0);
    CHECK(m.failing == 0 && m.unwritten == 2 && !metrics_pass(&m, 1));
    const uint16_t halves[] = {0x3c00, PREFILL_16, 0x3c00};
    const double ones[] = {1, 1, 1};
    m = run(DTYPE_F16, halves, ones, 3, 0, 0);
    CHECK(m.unwritten == 1 && m.unwritten_first == 1 && m.failing == 1 && m.first_bad.index == 1);
}

static void halves_are_read_as_halves(void) {
    const uint16_t got[] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00};
    const double reference[] = {1, -2, 0x1p-24, 65504, 65504};
    struct metrics m = run(DTYPE_F16, got, reference, 5, 0, 0);
    CHECK(m.failing == 1 && m.first_bad.index == 4 && m.inf == 1 && m.nonfinite_mismatch == 1);
    CHECK(m.ulp_max == 0);
    const uint16_t off[] = {0x3c01, 0xbc00};
    const double one[] = {1, -1.0009765625};
    m = run(DTYPE_F16, off, one, 2, 1, 1);
    CHECK(m.ulp_max == 1 && m.ulp_p50 == 1);
}

static void ulp_crosses_zero(void) {
    const float got[] = {0x1p-149f, -0.0f, 1.0f};
    const double reference[] = {-0x1p-149, 0.0, 1 + 0x1p-22};
    struct metrics m = run(DTYPE_F32, got, reference, 3, 1, 1);
    CHECK(m.ulp_max == 2 && m.ulp_p50 == 2); /* errors 2, 0 and 2 */
}

static void numbers_are_right(void) {
    float got[100];
    double reference[100];
    for (int i = 0; i < 100; i++) {
        reference[i] = 10;
        got[i] = 10;
    }
    got[7] = 11;
    got[8] = 8;
    struct metrics m = run(DTYPE_F32, got, reference, 100, 0.5, 0.01);
    CHECK(m.failing == 2 && m.first_bad.index == 7 && m.worst.index == 8 && m.worst.got == 8);
    CHECK(m.max_abs == 2 && m.mean_abs == 0.03 && m.p99_abs == 1 && m.ref_absmax == 10);
    CHECK(m.max_rel == 0.2 && m.p99_rel == 0.1 && fabs(m.nmse - 5.0 / 10000) < 1e-18);
    m = run(DTYPE_F32, got, reference, 100, 0, 0.2);
    CHECK(m.failing == 0);
}

int main(void) {
    nan_and_infinity_fail();
    nonfinite_can_be_demanded();
    near_zero_reference_needs_nmse();
    unwritten_elements_show();
    halves_are_read_as_halves();
    ulp_crosses_zero();
    numbers_are_right();
    return 0;
}
