/* IEEE 754 binary16, as bits: exact widening, and rounding to nearest even straight from double
 * (going through float first would round twice). */
#ifndef TILEFARM_HALF_H
#define TILEFARM_HALF_H

#include <stdint.h>

float half_to_float(uint16_t bits);
uint16_t half_from_double(double value);

#endif
