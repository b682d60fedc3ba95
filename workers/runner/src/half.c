/* Half-precision conversions; see half.h. */
#include "half.h"

#include <math.h>
#include <string.h>

float half_to_float(uint16_t bits) {
    unsigned exponent = (bits >> 10) & 0x1fu;
    unsigned mantissa = bits & 0x3ffu;
    float sign = (bits & 0x8000u) != 0 ? -1.0f : 1.0f;
    if (exponent == 0) {
        return sign * ldexpf((float)mantissa, -24);
    }
    if (exponent < 31) {
        return sign * ldexpf((float)(mantissa | 0x400u), (int)exponent - 25);
    }
    uint32_t wide = (uint32_t)(bits & 0x8000u) << 16 | 0x7f800000u | (uint32_t)mantissa << 13;
    float result;
    memcpy(&result, &wide, sizeof result);
    return result;
}

/* Units of 2^step in |value|, rounded to nearest even whatever the rounding mode is. */
static unsigned round_units(double magnitude, int step) {
    double scaled = ldexp(magnitude, -step); /* exact: a change of exponent only */
    double below = floor(scaled);
    double rest = scaled - below;
    unsigned units = (unsigned)below;
    if (rest > 0.5 || (rest == 0.5 && (units & 1u) != 0)) {
        units++;
    }
    return units;
}

uint16_t half_from_double(double value) {
    unsigned sign = signbit(value) ? 0x8000u : 0u;
    double magnitude = fabs(value);
    if (isnan(value)) {
        return (uint16_t)(sign | 0x7e00u);
    }
    if (magnitude >= 65520.0) { /* the tie between 65504 and 65536 goes to infinity */
        return (uint16_t)(sign | 0x7c00u);
    }
    if (magnitude <
        0x1p-14) { /* subnormal; rounding up to 2^-14 carries into the exponent by itself */
        return (uint16_t)(sign | round_units(magnitude, -24));
    }
    int exponent;
    (void)frexp(magnitude, &exponent); /* magnitude = m·2^exponent, m in [0.5, 1) */
    unsigned units = round_units(magnitude, exponent - 11);
    /* units is in [1024, 2048]; 2048 carries into the exponent, which is what is wanted. */
    return (uint16_t)(sign | (((unsigned)(exponent + 14) << 10) + (units - 1024u)));
}
