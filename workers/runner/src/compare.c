/* Comparison of outputs; see compare.h. */
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"
#include "quantile.h"

static double got_at(const struct comparison *c, size_t i) {
    if (c->dtype == DTYPE_F32) {
        float value;
        memcpy(&value, (const char *)c->got + i * 4, sizeof value);
        return (double)value;
    }
    if (c->dtype == DTYPE_U32) {
        uint32_t value;
        memcpy(&value, (const char *)c->got + i * 4, sizeof value);
        return (double)value;
    }
    uint16_t bits;
    memcpy(&bits, (const char *)c->got + i * 2, sizeof bits);
    return (double)half_to_float(bits);
}

static bool is_unwritten(const struct comparison *c, size_t i) {
    if (c->dtype == DTYPE_F16) {
        uint16_t bits;
        memcpy(&bits, (const char *)c->got + i * 2, sizeof bits);
        return bits == PREFILL_16;
    }
    uint32_t bits;
    memcpy(&bits, (const char *)c->got + i * 4, sizeof bits);
    return bits == PREFILL_32;
}

/* Position among all values of the type in their order, so that differences count representable
 * values; both zeros are 0. */
static double ordinal(enum dtype dtype, double value) {
    if (dtype == DTYPE_U32) {
        return value;
    }
    int32_t bits;
    if (dtype == DTYPE_F16) {
        bits = half_from_double(fabs(value));
    } else {
        float narrow = (float)fabs(value);
        memcpy(&bits, &narrow, sizeof bits);
    }
    return signbit(value) ? -(double)bits : (double)bits;
}

static bool wants_nonfinite(double reference) {
    uint64_t bits;
    memcpy(&bits, &reference, sizeof bits);
    return bits == REFERENCE_NONFINITE;
}

/* With a tolerance relative to an infinite reference every finite value would pass: compare those
 * by equality. */
static bool element_passes(const struct comparison *c, double got, double reference) {
    if (wants_nonfinite(reference)) {
        return !isfinite(got);
    }
    if (!isfinite(reference)) {
        return got == reference;
    }
    return fabs(got - reference) <= c->atol + c->rtol * fabs(reference);
}

static void note_failure(struct metrics *m, size_t i, double got, double reference) {
    struct mismatch here = {.index = i, .got = got, .reference = reference};
    if (m->failing == 0) {
        m->first_bad = here;
        m->worst = here;
    }
    m->failing++;
    double error = fabs(got - reference), worst = fabs(m->worst.got - m->worst.reference);
    if (isfinite(worst) && !(error <= worst)) { /* NaN and infinity are worse than any number */
        m->worst = here;
    }
}

struct sums {
    size_t finite, relative;
    double error, relative_error, error2, got2, reference2, product;
};

static void add_finite(struct metrics *m, struct sums *s, double got, double reference) {
    double error = fabs(got - reference);
    s->finite++;
    s->error += error;
    s->error2 += error * error;
    s->got2 += got * got;
    s->reference2 += reference * reference;
    s->product += got * reference;
    m->max_abs = fmax(m->max_abs, error);
    m->ref_absmax = fmax(m->ref_absmax, fabs(reference));
    if (reference != 0) {
        double relative = error / fabs(reference);
        s->relative++;
        s->relative_error += relative;
        m->max_rel = fmax(m->max_rel, relative);
    }
}

void count_unwritten(const struct comparison *c, struct metrics *m) {
    for (size_t i = 0; c->prefilled && i < c->count; i++) {
        if (is_unwritten(c, i)) {
            m->unwritten_first = m->unwritten == 0 ? i : m->unwritten_first;
            m->unwritten++;
        }
    }
}

static void scan(const struct comparison *c, struct metrics *m, struct sums *s) {
    for (size_t i = 0; i < c->count; i++) {
        double got = got_at(c, i), reference = c->reference[i];
        m->nan += isnan(got) ? 1 : 0;
        m->inf += isinf(got) ? 1 : 0;
        m->nonfinite_mismatch += !isfinite(got) != !isfinite(reference) ? 1 : 0;
        if (!element_passes(c, got, reference)) {
            note_failure(m, i, got, reference);
        }
        if (isfinite(got) && isfinite(reference)) {
            add_finite(m, s, got, reference);
        }
    }
}

static void summarise(struct metrics *m, const struct sums *s) {
    double both = sqrt(s->got2 * s->reference2);
    m->mean_abs = s->error / (double)s->finite; /* 0/0 is the NaN that is wanted */
    m->mean_rel = s->relative_error / (double)s->relative;
    m->nmse = s->error2 == 0 && s->finite > 0 ? 0 : s->error2 / s->reference2;
    m->cosine = both > 0 ? fmin(1, s->product / both) : s->error2 == 0 && s->finite > 0 ? 1 : 0;
    if (s->finite == 0) {
        m->max_abs = m->ref_absmax = m->cosine = NAN;
        m->nmse = m->failing == 0 ? 0 : NAN; /* 0: every element was to be non-finite, and is */
    }
    if (s->relative == 0) {
        m->max_rel = m->mean_rel = NAN;
    }
}

enum error_kind { ERROR_ABSOLUTE, ERROR_RELATIVE, ERROR_ULP };

/* Fills `errors` with one kind of error of all elements that have it; gives how many. */
static size_t collect(const struct comparison *c, enum error_kind kind, double *errors) {
    size_t used = 0;
    for (size_t i = 0; i < c->count; i++) {
        double got = got_at(c, i), reference = c->reference[i];
        if (!isfinite(got) || !isfinite(reference) || (kind == ERROR_RELATIVE && reference == 0)) {
            continue;
        }
        if (kind == ERROR_ULP) {
            errors[used++] = fabs(ordinal(c->dtype, got) - ordinal(c->dtype, reference));
        } else {
            double error = fabs(got - reference);
            errors[used++] = kind == ERROR_ABSOLUTE ? error : error / fabs(reference);
        }
    }
    return used;
}

bool compare(const struct comparison *c, struct metrics *m) {
    struct sums sums = {.finite = 0};
    memset(m, 0, sizeof *m);
    double *errors = malloc((c->count == 0 ? 1 : c->count) * sizeof *errors);
    if (errors == NULL) {
        return false;
    }
    count_unwritten(c, m);
    scan(c, m, &sums);
    summarise(m, &sums);
    size_t used = collect(c, ERROR_ABSOLUTE, errors);
    m->p99_abs = quantile(errors, used, 0.99);
    used = collect(c, ERROR_RELATIVE, errors);
    m->p99_rel = quantile(errors, used, 0.99);
    used = collect(c, ERROR_ULP, errors);
    m->ulp_max = quantile(errors, used, 1);
    m->ulp_p99 = quantile(errors, used, 0.99);
    m->ulp_p50 = quantile(errors, used, 0.5);
    free(errors);
    return true;
}

bool metrics_pass(const struct metrics *m, double nmse_bound) {
    return m->failing == 0 && m->unwritten == 0 && m->nmse <= nmse_bound;
}
